//! What something that instances depend on used.

use capacity::DependencyUse;

use super::number::counted;

/// As in "db uses 0.98 of its core; 16 connections".
pub fn describe(used: &DependencyUse) -> String {
    let connections = match used.connections {
        0 => String::new(),
        n => format!(" and has {}", counted(n, "connection")),
    };
    format!("{} {}{connections}", used.name, cpu(used))
}

/// As what follows "limited by", for one at its limit.
pub fn limit(used: &DependencyUse) -> String {
    format!("{}, which all instances share and which {}", used.name, cpu(used))
}

fn cpu(used: &DependencyUse) -> String {
    let cores = used.cores;
    match used.quota {
        Some(1.0) => format!("uses {cores:.2} of its core"),
        Some(quota) => format!("uses {cores:.2} of its {quota} cores"),
        None => match used.busiest_thread.filter(|_| used.is_full()) {
            Some(thread) => {
                let thread = thread.min(cores);
                format!("uses {cores:.2} cores ({thread:.2} of them in one thread)")
            }
            None => format!("uses {cores:.2} cores"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_described_beside_what_it_may_use() {
        let used = |cores, quota, thread| DependencyUse {
            name: "db".into(),
            cores,
            quota,
            busiest_thread: Some(thread),
            connections: 16,
            ports: vec![5432],
        };
        let core = used(0.98, Some(1.0), 0.2);
        assert_eq!(describe(&core), "db uses 0.98 of its core and has 16 connections");
        let part = describe(&used(0.49, Some(0.5), 0.2));
        assert!(part.starts_with("db uses 0.49 of its 0.5 cores"), "{part}");
        let single =
            "db, which all instances share and which uses 1.05 cores (0.97 of them in one thread)";
        assert_eq!(limit(&used(1.05, None, 0.97)), single);
        let idle = DependencyUse { connections: 0, ..used(0.1, None, 0.05) };
        assert_eq!(describe(&idle), "db uses 0.10 cores");
    }
}
