//! Says on standard error which instances die, are in a crash loop, or serve again. It also names other
//! trouble, such as a log that cannot be written.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::time::Duration;

use fleet::{MemberStatus, Past};

use crate::service::deployment::Deployment;
use crate::terminal::output;

/// How often the instances are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// What was reported of instances, by name.
#[derive(Debug, Default)]
struct Told {
    pasts: HashMap<String, Past>,
    warnings: HashSet<(String, String)>,
}

/// Reports crashes from now on.
pub async fn tell(deployment: &Deployment) -> Infallible {
    let mut told = Told::default();
    loop {
        tokio::time::sleep(LOOK).await;
        for status in deployment.apps.iter().flat_map(|app| app.fleet.members()) {
            for news in told.warning(&status).into_iter().chain(told.news(status)) {
                output::tell(format_args!("tenfold: {news}"));
            }
        }
    }
}

impl Told {
    fn warning(&mut self, status: &MemberStatus) -> Option<String> {
        let (name, warning) = (status.member.name.clone(), status.warning.clone()?);
        let news = format!("{}: {warning}", status.member.display_name());
        self.warnings.insert((name, warning)).then_some(news)
    }

    /// Within a reported loop, a crash like the one before is not reported.
    fn news(&mut self, status: MemberStatus) -> Option<String> {
        let MemberStatus { member, past, .. } = status;
        let name = member.display_name();
        let before = self.pasts.insert(member.name.clone(), past.clone()).unwrap_or_default();
        let cause = past.last_crash.as_deref().unwrap_or("nobody knows how");
        let is_new = past.restarts > before.restarts;
        match (before.crash_loop, past.crash_loop) {
            (None, Some(crashes)) => Some(format!(
                "{name} crashed {crashes} times in a row, the last time: {cause}; it is tried again after \
                 ever longer waits, up to 30 s: mend what ends it{}",
                past.last_output
            )),
            (Some(crashes), None) if !is_new => {
                Some(format!("{name} serves again, after {crashes} crashes in a row"))
            }
            (Some(_), Some(_)) if before.last_crash == past.last_crash => None,
            _ if is_new => Some(format!(
                "{name} died and is started again (restart {}): {cause}",
                past.restarts
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::SystemTime;

    use fleet::{Member, State};

    use super::*;

    fn status(restarts: u32, crash_loop: Option<u32>, cause: &str) -> MemberStatus {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 4000));
        let last_crash = (restarts > 0).then(|| cause.to_owned());
        MemberStatus {
            member: Member {
                id: 1,
                index: 1,
                name: "app-1".to_owned(),
                own_name: None,
                address,
                port_inside: None,
                handle: "2".to_owned(),
                extent: fleet::Extent::ProcessGroup(2),
            },
            state: State::Backoff,
            past: Past { restarts, crash_loop, last_crash, ..Past::default() },
            started_at: SystemTime::UNIX_EPOCH,
            next_start: None,
            warning: None,
        }
    }

    #[test]
    fn an_unwritable_log_is_reported_once() {
        let mut told = Told::default();
        let full = MemberStatus { warning: Some("disk full".to_owned()), ..status(0, None, "") };
        assert_eq!(told.warning(&full).unwrap(), "app-1: disk full");
        assert_eq!(told.warning(&full), None);
        assert_eq!(told.warning(&status(0, None, "")), None);
    }

    #[test]
    fn a_unit_is_called_as_systemd_calls_it() {
        let mut unit = status(1, None, "exited with code 1");
        unit.member.own_name = Some("fib@2".to_owned());
        unit.warning = Some("disk full".to_owned());
        let mut told = Told::default();
        assert_eq!(told.warning(&unit).unwrap(), "fib@2: disk full");
        let died = "fib@2 died and is started again (restart 1): exited with code 1";
        assert_eq!(told.news(unit).unwrap(), died);
    }

    #[test]
    fn each_change_is_reported_once() {
        let mut told = Told::default();
        let mut news = |restarts, crash_loop, cause| told.news(status(restarts, crash_loop, cause));
        assert_eq!(news(0, None, ""), None);
        let died = "app-1 died and is started again (restart 1): exited with code 1";
        assert_eq!(news(1, None, "exited with code 1").unwrap(), died);
        assert_eq!(news(1, None, "exited with code 1"), None);
        let looping = news(6, Some(6), "exited with code 1").unwrap();
        assert!(looping.starts_with("app-1 crashed 6 times in a row, the last time: exited with"));
        assert_eq!(news(7, Some(7), "exited with code 1"), None);
        let other = "app-1 died and is started again (restart 8): exited with code 2";
        assert_eq!(news(8, Some(8), "exited with code 2").unwrap(), other);
        assert_eq!(news(9, Some(9), "exited with code 2"), None);
        let again = "app-1 serves again, after 9 crashes in a row";
        assert_eq!(news(9, None, "exited with code 2").unwrap(), again);
        assert_eq!(news(9, None, "exited with code 2"), None);
        assert!(news(10, None, "exited with code 2").unwrap().contains("(restart 10)"));
    }
}
