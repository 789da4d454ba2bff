//! An instance that is unlike its peers.

use capacity::{Aspect, InstanceWork, Unevenness};

use super::number::{percent, time};

/// Said beside an answer: which one differs, and what that means for other counts.
pub fn differs(uneven: &Unevenness) -> String {
    let (which, than) = (uneven.different.instance, uneven.typical.instance);
    let how = match uneven.aspect {
        Aspect::Slower => format!(
            "instance {which} takes {} a request and instance {than} {}",
            time(uneven.different.service),
            time(uneven.typical.service)
        ),
        Aspect::Failing => format!(
            "instance {which} fails {} of its requests and instance {than} {}",
            percent(uneven.different.error_ratio()),
            percent(uneven.typical.error_ratio())
        ),
    };
    format!(
        "but instances differ: {how}, and what is predicted for other counts assumes equal ones"
    )
}

/// The numbers of every instance.
pub fn by_instance(uneven: &Unevenness) -> String {
    let which = uneven.different.instance;
    let ratio = uneven.ratio();
    let ratio = if ratio < 9.95 { format!("{ratio:.1}") } else { format!("{ratio:.0}") };
    let what = match uneven.aspect {
        Aspect::Slower => format!("takes {ratio} times as long as"),
        Aspect::Failing => format!("fails {ratio} times as often as"),
    };
    let each: Vec<String> = uneven.all.iter().map(of_one).collect();
    format!(
        "instance {which} {what} instance {} ({:.0} standard errors apart): {}",
        uneven.typical.instance,
        uneven.deviations,
        each.join("; ")
    )
}

fn of_one(work: &InstanceWork) -> String {
    let cpu = work.cpu.map_or_else(String::new, |cpu| format!(", {} of CPU", time(cpu)));
    let errors = match work.failed {
        0 => "no errors".to_owned(),
        _ => format!("{} errors", percent(work.error_ratio())),
    };
    format!(
        "{} took {}{cpu} a request, with {errors} in {} requests",
        work.instance,
        time(work.service),
        work.requests
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(instance: usize, requests: u64, service: f64, failed: u64) -> InstanceWork {
        InstanceWork {
            instance,
            requests,
            failed,
            answered: requests - failed,
            service,
            deviation: 0.001,
            in_flight: 1.0,
            cpu: Some(0.0005),
        }
    }

    #[test]
    fn a_slow_instance_is_told_with_the_numbers_of_all() {
        let [typical, different] = [work(1, 400, 0.02, 0), work(2, 100, 0.08, 1)];
        let uneven = Unevenness {
            aspect: Aspect::Slower,
            different,
            typical,
            deviations: 61.3,
            all: vec![typical, different],
        };
        assert_eq!(
            by_instance(&uneven),
            "instance 2 takes 4.0 times as long as instance 1 (61 standard errors apart): 1 took 20 ms, 500 us of CPU \
             a request, with no errors in 400 requests; 2 took 80 ms, 500 us of CPU a request, with 1 % errors in 100 \
             requests"
        );
        assert_eq!(
            differs(&uneven),
            "but instances differ: instance 2 takes 80 ms a request and instance 1 20 ms, and what is predicted for other \
             counts assumes equal ones"
        );
    }
}
