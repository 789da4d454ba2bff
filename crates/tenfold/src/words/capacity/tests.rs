use capacity::testing::{bounds, ladder, model, saturation};
use capacity::{Bounds, Failing, Kind, Model, ServiceShape, instance_capacity};

use super::*;

#[test]
fn a_second_instance_of_an_app_that_serves_one_request_at_a_time_helps() {
    let mut m = model(1, 0.02, 0.0001, 2.0);
    m.fit(&[saturation(2, 97.0, 0.0001, 0.1)]);
    let answer = instance_capacity(&m, &bounds(Kind::Serialized), Some(97.0));
    assert_eq!((answer.second_helps, answer.limited_by), (Some(true), Kind::Serialized));
    let said = "One instance carries 50.0 requests/s, limited by each instance serving one request at a time; two \
                carry 97.0, so a second helps. To learn how many instances you need,";
    assert!(reason(&answer).starts_with(said), "{}", reason(&answer));
    assert!(reason(&answer).contains("--users N --think 1s or --rate R"), "{}", reason(&answer));
}

#[test]
fn a_second_instance_on_a_full_core_does_not_help() {
    let mut m = model(1, 0.03, 0.03, 1.0);
    m.fit(&[saturation(2, 33.5, 0.03, 1.0)]);
    let answer = instance_capacity(&m, &bounds(Kind::CpuBound), Some(33.5));
    assert_eq!((answer.second_helps, answer.limited_by), (Some(false), Kind::CpuBound));
    let said = "two carry 33.5, so a second would not help, for the cores are busy.";
    assert!(reason(&answer).contains(said), "{}", reason(&answer));
}

#[test]
fn without_a_limit_of_one_a_second_instance_is_not_judged() {
    let one = saturation(1, 4612.0, 1.8e-4, 1.4);
    let rungs = ladder(&[(1, 2630.0), (2, 4612.0)]);
    let m = Model::new(rungs, one, ServiceShape::constant(), 2.0);
    let answer = instance_capacity(&m, &bounds(Kind::CpuBound), Some(6099.0));
    assert_eq!(answer.second_helps, None);
    let said = "carries 4612 requests/s or more: its limit was not reached; two carried 6099";
    assert!(reason(&answer).contains(said), "{}", reason(&answer));
}

#[test]
fn without_a_second_it_is_said_why() {
    let m = model(1, 0.02, 0.0001, 2.0);
    let said = |bounds: &Bounds| reason(&instance_capacity(&m, bounds, None));
    let allowed = Bounds { max_instances: 1, ..bounds(Kind::Serialized) };
    assert!(said(&allowed).contains("; more than one was not allowed (--max-instances)."));
    let full = Bounds { memory: Some(1), ..bounds(Kind::Serialized) };
    assert!(said(&full).contains("; no more than one fits into the memory."));
    let failing = Bounds { failing: Some(Failing::Requests(0.2)), ..allowed };
    assert!(said(&failing).contains("not known: 20 % of the requests fail without any overload"));
}
