#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| balancer::fuzzing::proxy_header(bytes));
