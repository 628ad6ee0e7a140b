(module
  (type $t (sub (func (result i32))))
  (table 1 funcref)
  (func (export "run") (result i32)
    (call_indirect (type $t) (i32.const 0))))
