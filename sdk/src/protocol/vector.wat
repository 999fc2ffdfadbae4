;; Where a JSON object or array ends: 64 bytes at a time, with a bit for each byte. `node tools/vector.ts` compiles it into vector-wasm.ts.
;; Memory: 64 KiB of text, then the closers that are waited for, innermost last.
(module
  (memory (export "memory") 2 2)
  ;; The closers stand from here on; there is room for as many.
  (global $CLOSERS i32 (i32.const 65536))
  (global $depth (mut i32) (i32.const 0))
  ;; All ones when the next byte stands in a string, else 0.
  (global $inside (mut i64) (i64.const 0))
  ;; 1 when a backslash stands before the next byte and makes it literal, else 0.
  (global $literal (mut i64) (i64.const 0))

  (func (export "reset")
    (global.set $depth (i32.const 0))
    (global.set $inside (i64.const 0))
    (global.set $literal (i64.const 0)))

  ;; One bit for each byte of four comparisons.
  (func $bits (param $a v128) (param $b v128) (param $c v128) (param $d v128) (result i64)
    (i64.or
      (i64.extend_i32_u
        (i32.or (i8x16.bitmask (local.get $a)) (i32.shl (i8x16.bitmask (local.get $b)) (i32.const 16))))
      (i64.shl
        (i64.extend_i32_u
          (i32.or (i8x16.bitmask (local.get $c)) (i32.shl (i8x16.bitmask (local.get $d)) (i32.const 16))))
        (i64.const 32))))

  ;; The bytes that a backslash makes literal: each one behind an odd run of them.
  (func $literals (param $slashes i64) (result i64)
    (local $starts i64) (local $ends i64) (local $before i64)
    (local.set $before (global.get $literal))
    (if (i64.eqz (local.get $slashes))
      (then
        (global.set $literal (i64.const 0))
        (return (local.get $before))))
    (local.set $starts (i64.and (local.get $slashes) (i64.xor (local.get $before) (i64.const -1))))
    ;; A run that starts at an even place borrows its way through the odd bits, and the other way round.
    (local.set $ends
      (i64.xor
        (i64.sub
          (i64.or (i64.shl (local.get $starts) (i64.const 1)) (i64.const 0xaaaaaaaaaaaaaaaa))
          (local.get $starts))
        (i64.const 0xaaaaaaaaaaaaaaaa)))
    (global.set $literal
      (i64.shr_u (i64.and (local.get $ends) (local.get $slashes)) (i64.const 63)))
    (i64.xor (local.get $ends) (i64.or (local.get $slashes) (local.get $before))))

  ;; Reads `size` bytes (a multiple of 64). The position after the container, 0 when it goes on, -1 for what the plain scan must judge.
  (func (export "scan") (param $size i32) (result i32)
    (local $at i32) (local $place i32) (local $byte i32) (local $depth i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local $x v128) (local $y v128) (local $z v128)
    (local $slashes i64) (local $inside i64) (local $stops i64)
    (local.set $depth (global.get $depth))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $size)))
        (local.set $a (v128.load (local.get $at)))
        (local.set $b (v128.load offset=16 (local.get $at)))
        (local.set $c (v128.load offset=32 (local.get $at)))
        (local.set $d (v128.load offset=48 (local.get $at)))
        (local.set $x (i8x16.splat (i32.const 0x5c)))
        (local.set $slashes
          (call $bits
            (i8x16.eq (local.get $a) (local.get $x)) (i8x16.eq (local.get $b) (local.get $x))
            (i8x16.eq (local.get $c) (local.get $x)) (i8x16.eq (local.get $d) (local.get $x))))
        (local.set $x (i8x16.splat (i32.const 0x22)))
        (local.set $inside
          (i64.and
            (call $bits
              (i8x16.eq (local.get $a) (local.get $x)) (i8x16.eq (local.get $b) (local.get $x))
              (i8x16.eq (local.get $c) (local.get $x)) (i8x16.eq (local.get $d) (local.get $x)))
            (i64.xor (call $literals (local.get $slashes)) (i64.const -1))))
        ;; From the quotes to all bytes from an opening one to before its closing one.
        (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 1))))
        (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 2))))
        (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 4))))
        (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 8))))
        (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 16))))
        (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 32))))
        (local.set $inside (i64.xor (local.get $inside) (global.get $inside)))
        (global.set $inside (i64.shr_s (local.get $inside) (i64.const 63)))
        ;; Outside of strings a backslash means nothing in JSON: the masks above took it for one that does.
        (if (i64.ne (i64.and (local.get $slashes) (i64.xor (local.get $inside) (i64.const -1))) (i64.const 0))
          (then (return (i32.const -1))))
        ;; With bit 5 set, both openers are 0x7b and both closers 0x7d, and no other byte is either.
        (local.set $x (i8x16.splat (i32.const 0x20)))
        (local.set $a (v128.or (local.get $a) (local.get $x)))
        (local.set $b (v128.or (local.get $b) (local.get $x)))
        (local.set $c (v128.or (local.get $c) (local.get $x)))
        (local.set $d (v128.or (local.get $d) (local.get $x)))
        (local.set $y (i8x16.splat (i32.const 0x7b)))
        (local.set $z (i8x16.splat (i32.const 0x7d)))
        (local.set $stops
          (i64.and
            (call $bits
              (v128.or (i8x16.eq (local.get $a) (local.get $y)) (i8x16.eq (local.get $a) (local.get $z)))
              (v128.or (i8x16.eq (local.get $b) (local.get $y)) (i8x16.eq (local.get $b) (local.get $z)))
              (v128.or (i8x16.eq (local.get $c) (local.get $y)) (i8x16.eq (local.get $c) (local.get $z)))
              (v128.or (i8x16.eq (local.get $d) (local.get $y)) (i8x16.eq (local.get $d) (local.get $z))))
            (i64.xor (local.get $inside) (i64.const -1))))
        (block $read
          (loop $stop
            (br_if $read (i64.eqz (local.get $stops)))
            (local.set $place (i32.add (local.get $at) (i32.wrap_i64 (i64.ctz (local.get $stops)))))
            (local.set $byte (i32.load8_u (local.get $place)))
            ;; Both openers have bit 1, no closer has; both closers stand two after their openers.
            (if (i32.and (local.get $byte) (i32.const 2))
              (then
                (if (i32.ge_u (local.get $depth) (global.get $CLOSERS)) (then (return (i32.const -1))))
                (i32.store8 offset=65536 (local.get $depth) (i32.add (local.get $byte) (i32.const 2)))
                (local.set $depth (i32.add (local.get $depth) (i32.const 1))))
              (else
                (local.set $depth (i32.sub (local.get $depth) (i32.const 1)))
                (if (i32.ne (i32.load8_u offset=65536 (local.get $depth)) (local.get $byte)) (then (return (i32.const -1))))
                (if (i32.eqz (local.get $depth)) (then (return (i32.add (local.get $place) (i32.const 1)))))))
            (local.set $stops (i64.and (local.get $stops) (i64.sub (local.get $stops) (i64.const 1))))
            (br $stop)))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (br $next)))
    (global.set $depth (local.get $depth))
    (i32.const 0)))
