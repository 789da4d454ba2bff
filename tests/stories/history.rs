//! Every run is kept, and a disk that is full is said so.

use std::process::Command;

use crate::house::{Home, alone, json, said, shared};

#[test]
fn runs_are_listed_and_shown_again() {
    let _machine = alone();
    let home = Home::new();
    assert!(said(&home.run("runs")).contains("No runs yet"));
    let program = env!("CARGO_BIN_EXE_tenfold");
    let first = home.measure(&format!(
        "plan --quiet --rate 30 --p95 500ms --budget 30s --env PASSWORD=s3cret \
         -- env TOKEN=s3cret {program} demo-app"
    ));
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    assert!(said(&first).contains("env TOKEN=*** "), "{}", said(&first));
    assert!(said(&home.run("runs")).contains("demo-app"));
    assert_eq!(home.files_with("s3cret"), [""; 0]);
    let again = home.run("show last");
    assert_eq!(said(&again), said(&first));
    assert_eq!(json(&home.run("show last --json -"))["schema"], "tenfold/plan/1");
    let none = home.run("show 7");
    assert_eq!(none.status.code(), Some(2));
    assert!(said(&none).contains("there is no run 7: `tenfold runs` lists them"));
}

/// A file system of a few pages, in a mount namespace that ends with the command.
#[test]
fn a_full_disk() {
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
}
