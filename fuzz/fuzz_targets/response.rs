#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let [kind, bytes @ ..] = bytes {
        balancer::fuzzing::response(*kind, bytes);
    }
});
