//! Failed requests by the code that says why: `status 503`, where it is known, and not its class.

use std::collections::BTreeMap;

use crate::document::load::Failure;

/// What failed under a kind's name, as in `status 503`, with the count of each. Where answers of a class failed and
/// others of it did not, as scripts allow, nobody knows which code failed.
pub fn of_kind(kind: &str, count: u64, statuses: &BTreeMap<u16, u64>) -> Vec<(String, u64)> {
    let Some(class) = class(kind) else { return vec![(kind.to_owned(), count)] };
    // Invalid codes count as 5xx (RFC 9110, 15).
    let is_of_class = |status: u16| (status / 100).min(5) == class;
    let of_class: Vec<_> = statuses.iter().filter(|(status, _)| is_of_class(**status)).collect();
    if of_class.iter().map(|(_, n)| **n).sum::<u64>() != count {
        let codes: Vec<String> = of_class.iter().map(|(status, _)| status.to_string()).collect();
        let codes = if codes.is_empty() { format!("{class}xx") } else { codes.join(" or ") };
        return vec![(format!("status {codes}"), count)];
    }
    of_class.into_iter().map(|(status, n)| (format!("status {status}"), *n)).collect()
}

/// A failure of one kind of request.
pub fn name(failure: &Failure) -> String {
    failure.status.map_or_else(|| failure.error.clone(), |status| format!("status {status}"))
}

/// The most frequent of them.
pub fn most_frequent<'a>(
    errors: impl Iterator<Item = (&'a str, u64)>,
    statuses: &BTreeMap<u16, u64>,
) -> Option<String> {
    let each = errors.flat_map(|(kind, count)| of_kind(kind, count, statuses));
    each.max_by_key(|(_, count)| *count).map(|(name, _)| name)
}

/// 4 of `status_4xx`.
fn class(kind: &str) -> Option<u16> {
    match kind {
        "status_4xx" => Some(4),
        "status_5xx" => Some(5),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_code() {
        let statuses = BTreeMap::from([(200, 9), (404, 2), (500, 1), (503, 4)]);
        let of = |kind, count| of_kind(kind, count, &statuses);
        let both = [("status 500".to_owned(), 1), ("status 503".to_owned(), 4)];
        assert_eq!(of("status_5xx", 5), both);
        assert_eq!(of("status_5xx", 3), [("status 500 or 503".to_owned(), 3)]);
        let odd = BTreeMap::from([(999, 7)]);
        assert_eq!(of_kind("status_5xx", 7, &odd), [("status 999".to_owned(), 7)]);
        assert_eq!(of("reset", 3), [("reset".to_owned(), 3)]);
        let errors = [("reset", 3), ("status_5xx", 5)];
        assert_eq!(most_frequent(errors.into_iter(), &statuses).unwrap(), "status 503");
    }
}
