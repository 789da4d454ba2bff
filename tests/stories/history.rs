//! Every run is kept, and a disk that is full is said so.

use std::process::Command;

use crate::harness::{Home, alone, cannot_run, json, said, shared};

#[test]
fn a_report_that_cannot_be_printed_is_still_kept() {
    let home = Home::new();
    let nowhere = std::fs::File::create("/dev/full").unwrap();
    let sizes = "--cpus 0.5 --memory 60MB --instances 1 -n 20 -c 1 --longest 2s --p99 10s";
    let program = env!("CARGO_BIN_EXE_tenfold");
    let cost = format!("cost --quiet {sizes} --json cost.json -- {program} demo-app");
    let _machine = alone();
    let output = home.tenfold(&cost).stdout(nowhere).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    if said.contains("cannot limit") {
        return cannot_run("this user may make no control groups");
    }
    let text = std::fs::read_to_string(home.path().join("cost.json")).unwrap();
    let sizing: serde_json::Value = serde_json::from_str(&text).unwrap();
    // Too few answers for the percentile: the longest stands for it.
    let measured = &sizing["vertical"][0]["measured"];
    assert!(measured["p99_ms"].is_null() && measured["goal_met"] == true, "{sizing:#}");
    assert_eq!(json(&home.run("show last --json -")), sizing);
}

/// A file system of a few pages, in a mount namespace that ends with the command.
#[test]
fn a_full_disk_is_an_error_that_keeps_the_old_history() {
    let _machine = shared();
    let home = Home::new();
    let disk = home.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=16k none {disk} && head -c 12288 /dev/zero > {disk}/filler && \
         TENFOLD_STATE_DIR={disk} exec {program} plan --quiet --users 1 -- sleep 4714",
        disk = disk.display(),
        program = env!("CARGO_BIN_EXE_tenfold")
    );
    let output = Command::new("unshare").args(["-rm", "sh", "-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("free some space"), "{}", said(&output));
    // Earlier runs can still be read, and that there are none.
    let script = format!(
        "export TENFOLD_STATE_DIR={disk}; mount -t tmpfs -o ro none {disk} && {program} runs && \
         mount -o remount,rw {disk} && {program} plan --users 1 -- no-such-program 2>/dev/null; \
         mount -o remount,ro {disk} && exec {program} runs",
        disk = disk.display(),
        program = env!("CARGO_BIN_EXE_tenfold")
    );
    let output = Command::new("unshare").args(["-rm", "sh", "-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(said(&output).matches("No runs yet").count(), 2, "{}", said(&output));
}
