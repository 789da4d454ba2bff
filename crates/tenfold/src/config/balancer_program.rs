//! Which program balances, and which settings do not apply to it.

use serde::{Deserialize, Serialize};

use super::BalancingArguments;
use super::file::File;
use super::source::{Key, Wrong};
use balancer::{Address, Policy, Slots, Timeouts};

/// What balances the requests of `up`, and of `plan`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum BalancerProgram {
    /// Tenfold itself
    #[default]
    Tenfold,
    /// nginx by least_conn, which Tenfold starts and configures
    Nginx,
    /// HAProxy by leastconn, which Tenfold starts and configures
    Haproxy,
}

/// The balancer behind which an app is measured.
#[derive(Clone, Debug)]
pub struct MeasuredBalancer {
    pub program: BalancerProgram,
    /// Threads of nginx or HAProxy. Tenfold's own measures with one.
    pub threads: usize,
    pub timeouts: Timeouts,
}

/// Settings of the file that only Tenfold's own balancer has.
const OWN: [&[&str]; 20] = [
    &["apps"],
    &["routes"],
    &["balancer", "acme"],
    &["balancer", "access_log"],
    &["balancer", "forwarding"],
    &["balancer", "limits"],
    &["app", "attempts"],
    &["app", "health"],
    &["app", "max_connections"],
    &["app", "max_upgraded"],
    &["app", "policy"],
    &["app", "protocol"],
    &["app", "retries"],
    &["app", "reuse"],
    &["app", "slow_start"],
    &["balancer", "timeouts", "handshake"],
    &["balancer", "timeouts", "upload"],
    &["balancer", "timeouts", "client_grace"],
    &["balancer", "timeouts", "stall"],
    &["balancer", "timeouts", "backend_idle"],
];

/// What goes with a queue, which nginx lacks.
const OF_A_QUEUE: [&[&str]; 2] = [&["app", "slots"], &["app", "queue"]];

impl BalancerProgram {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            BalancerProgram::Tenfold => "Tenfold",
            BalancerProgram::Nginx => "nginx",
            BalancerProgram::Haproxy => "HAProxy",
        }
    }

    /// How it spreads requests, in its own words.
    pub fn policy(self) -> &'static str {
        match self {
            BalancerProgram::Tenfold => "queue",
            BalancerProgram::Nginx => "least_conn",
            BalancerProgram::Haproxy => "leastconn",
        }
    }

    /// Whether requests wait in it for a free slot of an instance.
    pub fn has_queue(self) -> bool {
        self != BalancerProgram::Nginx
    }

    /// Refuses what this program does not do.
    pub(super) fn check(
        self,
        file: &File,
        arguments: &BalancingArguments,
        slots: Option<Slots>,
        listen: &[balancer::Listener],
    ) -> Result<(), Wrong> {
        if self == BalancerProgram::Tenfold {
            return Ok(());
        }
        let name = self.name();
        let has = |key: &&&[&str]| file.source.has(&Key::of(key));
        if let Some(key) = OWN.iter().find(has) {
            return Err(Key::of(key).wrong(&format!(
                "{} is of Tenfold's own balancer, and {name} balances here: take it out, or leave out the balancer's \
                 program",
                key.join(".")
            )));
        }
        let own = [
            ("--tls-cert", arguments.tls_cert.is_some()),
            ("--health-path", arguments.health_path.is_some()),
            ("--log", arguments.log.is_some()),
            ("--takeover", arguments.takeover),
            (
                "--policy",
                arguments.policy.as_ref().is_some_and(|policy| *policy != Policy::LeastConn),
            ),
        ];
        if let Some((flag, _)) = own.iter().find(|(_, is_said)| *is_said) {
            return Err(Key::default().wrong(&format!(
                "{flag} is of Tenfold's own balancer, and {name} balances here by least connections: leave out {flag} or \
                 --balancer"
            )));
        }
        let is_plain = |listener: &balancer::Listener| {
            *listener == balancer::Listener::new(listener.address.clone())
        };
        for listener in listen {
            if matches!(listener.address, Address::Unix(_)) || !is_plain(listener) {
                return Err(Key::of(&["balancer", "listeners"]).wrong(&format!(
                    "{name} is given plain HTTP on TCP addresses only: write {} as HOST:PORT alone, or leave out --balancer",
                    listener.address
                )));
            }
        }
        let queue = [
            ("--slots", slots.is_some()),
            ("--queue-length", arguments.queue_length.is_some()),
            ("--queue-wait", arguments.queue_wait.is_some()),
        ];
        if self == BalancerProgram::Nginx {
            let flag = queue.iter().find(|(_, is_said)| *is_said).map(|(flag, _)| *flag);
            let key = OF_A_QUEUE.iter().find(has);
            if let Some(what) = flag.map(str::to_owned).or_else(|| key.map(|key| key.join("."))) {
                let at = key.filter(|_| flag.is_none()).map(|key| Key::of(key));
                return Err(at.unwrap_or_default().wrong(&format!(
                    "nginx has no queue, so {what} cannot hold requests back: leave it out, or take --balancer haproxy, \
                     which queues"
                )));
            }
        }
        if slots == Some(Slots::Auto) || file.app.slots == Some(Slots::Auto) {
            return Err(Key::default().wrong(
                "only Tenfold's own balancer finds slots while it serves: give a number as --slots, or leave out --balancer",
            ));
        }
        Ok(())
    }
}

impl Default for MeasuredBalancer {
    fn default() -> MeasuredBalancer {
        let program = BalancerProgram::Tenfold;
        MeasuredBalancer { program, threads: 1, timeouts: Timeouts::default() }
    }
}

impl MeasuredBalancer {
    /// The one that is said, else the file's, with the settings that it has under `up`.
    pub fn of(said: Option<BalancerProgram>, file: &File) -> anyhow::Result<MeasuredBalancer> {
        let program = said.or(file.balancer.program).unwrap_or_default();
        let checked = program.check(file, &BalancingArguments::default(), None, &[]);
        checked.map_err(|wrong| file.source.wrong(&wrong))?;
        Ok(match program {
            BalancerProgram::Tenfold => MeasuredBalancer::default(),
            _ => MeasuredBalancer {
                program,
                threads: file.balancer.threads.unwrap_or(1),
                timeouts: file.balancer.timeouts.resolve(),
            },
        })
    }
}
