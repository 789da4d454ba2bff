//! How deep idle cores may sleep while a load runs: what they need to wake up is in the measured times.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{anyhow, bail};

/// The kernel's "PM quality of service" interface.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// No core takes longer to wake up until what this returns is closed, however the process ends.
pub fn bound(latency: Duration) -> anyhow::Result<File> {
    ask(Path::new(DEVICE), latency)
}

fn ask(device: &Path, latency: Duration) -> anyhow::Result<File> {
    let shown = device.display();
    let microseconds = i32::try_from(latency.as_micros()).unwrap_or(i32::MAX);
    let asked = OpenOptions::new().write(true).open(device).and_then(|mut file| {
        file.write_all(&microseconds.to_ne_bytes())?;
        Ok(file)
    });
    match asked {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            bail!("{shown} may not be written: run as root, or leave --dma-latency out")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("this system has no {shown}: leave --dma-latency out")
        }
        Err(error) => Err(anyhow!("{shown}: {error}; leave --dma-latency out")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_limit_is_in_whole_microseconds() {
        let device = tempfile::NamedTempFile::new().unwrap();
        for (latency, microseconds) in [(0, 0_i32), (20_900, 20), (u64::MAX, i32::MAX)] {
            drop(ask(device.path(), Duration::from_nanos(latency)).unwrap());
            assert_eq!(std::fs::read(device.path()).unwrap(), microseconds.to_ne_bytes());
        }
    }

    #[test]
    fn without_the_device_the_flag_is_named() {
        let error = ask(Path::new("/dev/none"), Duration::ZERO).unwrap_err().to_string();
        assert_eq!(error, "this system has no /dev/none: leave --dma-latency out");
    }
}
