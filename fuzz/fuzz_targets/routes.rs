#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| balancer::fuzzing::routes(text));
