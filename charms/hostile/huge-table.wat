(module
  (table (export "table") 1000000000 funcref))
