(module
  (memory (export "memory") 65536))
