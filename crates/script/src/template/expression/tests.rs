//! Conditions, and what is none.

use super::*;

fn holds(text: &str) -> bool {
    let expression = Expression::parse(text).unwrap();
    expression.holds(&|index| match expression.names()[index].as_str() {
        "http.response_time.p95" => Operand::Number(200.0),
        "http.codes.200" | "plugins.metrics-by-endpoint./a-b/c.codes.200" => Operand::Number(9.0),
        "kind" => Operand::Text("admin".into()),
        _ => Operand::Number(f64::NAN),
    })
}

#[test]
fn conditions_hold_or_do_not() {
    for (text, wanted) in [
        ("http.response_time.p95 < 250", true),
        ("http.response_time.p95 < 200", false),
        ("http.response_time.p95 <= 200 and http.codes.200 == 9", true),
        ("not (1 > 2) or unknown > 1", true),
        ("unknown < 1", false),
        ("1 + 2 * 3 == 7 and 2 ^ 3 % 5 == 3 and -(2 - 4) == 2", true),
        ("plugins.metrics-by-endpoint./a-b/c.codes.200>8 and 1 == 1", true),
        ("kind == \"admin\"", true),
        ("kind in (\"user\", \"admin\")", true),
        ("kind == \"user\" ? 0 : max(1, 0)", true),
        ("'http.codes.200' / 3 = 3", true),
        ("round(2.6) == 3 and abs(1 - 3) >= 2", true),
    ] {
        assert_eq!(holds(text), wanted, "{text}");
    }
}

#[test]
fn invalid_conditions_are_named() {
    for (text, why) in [
        ("", "it ends too early"),
        ("a <", "it ends too early"),
        ("a b", "'b' is not expected there"),
        ("(a", "a ')' is missing"),
        ("a & b", "'&' means nothing"),
        ("f(1)", "there is no function 'f'"),
        ("\"a", "a closing \" is missing"),
        ("1.2.3", "'1.2.3' is not a number"),
    ] {
        assert_eq!(Expression::parse(text).unwrap_err().to_string(), why, "{text}");
    }
    let deep = "(".repeat(500);
    assert_eq!(Expression::parse(&deep).unwrap_err().to_string(), "it is nested too deeply");
}

#[test]
fn long_expressions_do_not_overflow_the_stack() {
    for repeated in ["+1", "^1", " or 1", "<1"] {
        let error = Expression::parse(&format!("1{}", repeated.repeat(50_000))).unwrap_err();
        assert_eq!(error.to_string(), "it is too long");
        let expression = Expression::parse(&format!("1{}", repeated.repeat(400))).unwrap();
        expression.holds(&|_| Operand::Number(1.0));
    }
}
