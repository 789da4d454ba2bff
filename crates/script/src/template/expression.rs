//! Conditions over numbers and texts, as scripts write them: `http.response_time.p95 < 250 and
//! vusers.failed == 0`.
//!
//! Operators from loose to tight: `? :`, `or`, `and`, `not`, comparisons and `in`, `+ -`, `* / %`, `^`, sign.
//! True is 1 and false is 0. Comparisons with something that has no value are false.

use std::fmt;

/// A parsed condition.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    root: Node,
    /// The names that occur, each once.
    names: Vec<String>,
}

/// The value of a name or of a part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    /// Not a number (NaN) if there is no value.
    Number(f64),
    Text(String),
}

/// Why a text is not a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError(String);

#[derive(Debug, Clone)]
enum Node {
    Number(f64),
    Text(String),
    Name(usize),
    Not(Box<Node>),
    Negative(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Choice(Box<[Node; 3]>),
    In(Box<Node>, Vec<Node>),
    Call(Function, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    Unequal,
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Abs,
    Ceil,
    Floor,
    Log,
    Max,
    Min,
    Round,
    Sqrt,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Text(String),
    Name(String),
    Sign(&'static str),
}

/// The deepest nesting, which bounds the stack.
const MAX_DEPTH: u32 = 100;
/// The longest condition. Operators on one level use the stack as well.
const MAX_TOKENS: usize = 1000;

/// The prefix of metrics of the plugin metrics-by-endpoint. In these names a hyphen is no minus, and a slash is no
/// division.
pub(crate) const ENDPOINTS: &str = "plugins.metrics-by-endpoint";

const SIGNS: [&str; 18] =
    ["<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "%", "^", "(", ")", ",", "?", ":", "="];

impl Expression {
    pub(crate) fn parse(text: &str) -> Result<Expression, SyntaxError> {
        let tokens = tokens(text)?;
        if tokens.len() > MAX_TOKENS {
            return Err(SyntaxError("it is too long".into()));
        }
        let mut parser = Parser { tokens, at: 0, names: Vec::new(), depth: 0 };
        let root = parser.choice()?;
        match parser.tokens.get(parser.at) {
            None => Ok(Expression { root, names: parser.names }),
            Some(token) => Err(SyntaxError(format!("{token} is not expected there"))),
        }
    }

    /// The names that need a value, in the order in which `value` is asked for them.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether it holds. `value` gives the value of the n-th name.
    pub(crate) fn holds(&self, value: &dyn Fn(usize) -> Operand) -> bool {
        self.root.evaluate(value).is_true()
    }
}

impl Operand {
    fn is_true(&self) -> bool {
        match self {
            Operand::Number(number) => *number != 0.0 && !number.is_nan(),
            Operand::Text(text) => !text.is_empty(),
        }
    }

    fn number(&self) -> f64 {
        match self {
            Operand::Number(number) => *number,
            Operand::Text(text) => text.trim().parse().unwrap_or(f64::NAN),
        }
    }

    fn equals(&self, other: &Operand) -> bool {
        match (self, other) {
            (Operand::Text(one), Operand::Text(two)) => one == two,
            _ => self.number() == other.number(),
        }
    }
}

fn truth(holds: bool) -> Operand {
    Operand::Number(f64::from(u8::from(holds)))
}

impl Node {
    fn evaluate(&self, value: &dyn Fn(usize) -> Operand) -> Operand {
        match self {
            Node::Number(number) => Operand::Number(*number),
            Node::Text(text) => Operand::Text(text.clone()),
            Node::Name(index) => value(*index),
            Node::Not(node) => truth(!node.evaluate(value).is_true()),
            Node::Negative(node) => Operand::Number(-node.evaluate(value).number()),
            Node::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                match condition.evaluate(value).is_true() {
                    true => yes.evaluate(value),
                    false => no.evaluate(value),
                }
            }
            Node::In(node, list) => {
                let sought = node.evaluate(value);
                truth(list.iter().any(|one| one.evaluate(value).equals(&sought)))
            }
            Node::Binary(operator, left, right) => {
                operator.apply(&left.evaluate(value), &right.evaluate(value))
            }
            Node::Call(function, arguments) => {
                let numbers = arguments.iter().map(|one| one.evaluate(value).number());
                Operand::Number(function.apply(numbers))
            }
        }
    }
}

impl Operator {
    fn apply(self, left: &Operand, right: &Operand) -> Operand {
        let (a, b) = (left.number(), right.number());
        match self {
            Operator::Or => truth(left.is_true() || right.is_true()),
            Operator::And => truth(left.is_true() && right.is_true()),
            Operator::Less => truth(a < b),
            Operator::LessOrEqual => truth(a <= b),
            Operator::Greater => truth(a > b),
            Operator::GreaterOrEqual => truth(a >= b),
            Operator::Equal => truth(left.equals(right)),
            Operator::Unequal => truth(!left.equals(right)),
            Operator::Plus => Operand::Number(a + b),
            Operator::Minus => Operand::Number(a - b),
            Operator::Times => Operand::Number(a * b),
            Operator::Over => Operand::Number(a / b),
            Operator::Modulo => Operand::Number(a % b),
            Operator::Power => Operand::Number(a.powf(b)),
        }
    }
}

impl Function {
    fn named(name: &str) -> Option<Function> {
        Some(match name {
            "abs" => Function::Abs,
            "ceil" => Function::Ceil,
            "floor" => Function::Floor,
            "log" => Function::Log,
            "max" => Function::Max,
            "min" => Function::Min,
            "round" => Function::Round,
            "sqrt" => Function::Sqrt,
            _ => return None,
        })
    }

    fn apply(self, mut numbers: impl Iterator<Item = f64>) -> f64 {
        let first = numbers.next().unwrap_or(f64::NAN);
        match self {
            Function::Abs => first.abs(),
            Function::Ceil => first.ceil(),
            Function::Floor => first.floor(),
            Function::Log => first.ln(),
            Function::Max => numbers.fold(first, f64::max),
            Function::Min => numbers.fold(first, f64::min),
            Function::Round => first.round(),
            Function::Sqrt => first.sqrt(),
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    names: Vec<String>,
    depth: u32,
}

impl Parser {
    fn choice(&mut self) -> Result<Node, SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SyntaxError("it is nested too deeply".into()));
        }
        let condition = self.either()?;
        let node = if self.take("?") {
            let yes = self.choice()?;
            self.demand(":")?;
            Node::Choice(Box::new([condition, yes, self.choice()?]))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(node)
    }

    fn either(&mut self) -> Result<Node, SyntaxError> {
        let mut node = self.both()?;
        while self.take_word("or") {
            node = binary(Operator::Or, node, self.both()?);
        }
        Ok(node)
    }

    fn both(&mut self) -> Result<Node, SyntaxError> {
        let mut node = self.negation()?;
        while self.take_word("and") {
            node = binary(Operator::And, node, self.negation()?);
        }
        Ok(node)
    }

    fn negation(&mut self) -> Result<Node, SyntaxError> {
        let mut times = 0;
        while self.take_word("not") {
            times += 1;
        }
        let node = self.comparison()?;
        Ok(match times % 2 {
            1 => Node::Not(Box::new(node)),
            _ if times > 0 => Node::Not(Box::new(Node::Not(Box::new(node)))),
            _ => node,
        })
    }

    fn comparison(&mut self) -> Result<Node, SyntaxError> {
        const COMPARISONS: [(&str, Operator); 7] = [
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("==", Operator::Equal),
            ("=", Operator::Equal),
            ("!=", Operator::Unequal),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let mut node = self.sum()?;
        while let Some((_, operator)) = COMPARISONS.iter().find(|(sign, _)| self.take(sign)) {
            node = binary(*operator, node, self.sum()?);
        }
        match self.take_word("in") {
            true => {
                self.demand("(")?;
                Ok(Node::In(Box::new(node), self.list()?))
            }
            false => Ok(node),
        }
    }

    fn sum(&mut self) -> Result<Node, SyntaxError> {
        let mut node = self.product()?;
        loop {
            node = if self.take("+") {
                binary(Operator::Plus, node, self.product()?)
            } else if self.take("-") {
                binary(Operator::Minus, node, self.product()?)
            } else {
                return Ok(node);
            };
        }
    }

    fn product(&mut self) -> Result<Node, SyntaxError> {
        let mut node = self.power()?;
        loop {
            node = if self.take("*") {
                binary(Operator::Times, node, self.power()?)
            } else if self.take("/") {
                binary(Operator::Over, node, self.power()?)
            } else if self.take("%") {
                binary(Operator::Modulo, node, self.power()?)
            } else {
                return Ok(node);
            };
        }
    }

    fn power(&mut self) -> Result<Node, SyntaxError> {
        let mut node = self.signed()?;
        while self.take("^") {
            node = binary(Operator::Power, node, self.signed()?);
        }
        Ok(node)
    }

    fn signed(&mut self) -> Result<Node, SyntaxError> {
        let mut negative = false;
        while self.take("-") {
            negative = !negative;
        }
        let node = self.atom()?;
        Ok(if negative { Node::Negative(Box::new(node)) } else { node })
    }

    fn atom(&mut self) -> Result<Node, SyntaxError> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Number(number)) => Ok(Node::Number(number)),
            Some(Token::Text(text)) => Ok(Node::Text(text)),
            Some(Token::Name(name)) if self.take("(") => {
                let function = Function::named(&name)
                    .ok_or_else(|| SyntaxError(format!("there is no function '{name}'")))?;
                Ok(Node::Call(function, self.list()?))
            }
            Some(Token::Name(name)) => Ok(Node::Name(self.name(name))),
            Some(Token::Sign("(")) => {
                let node = self.choice()?;
                self.demand(")")?;
                Ok(node)
            }
            Some(token) => Err(SyntaxError(format!("{token} is not expected there"))),
            None => Err(SyntaxError("it ends too early".into())),
        }
    }

    /// The expression between parentheses.
    fn list(&mut self) -> Result<Vec<Node>, SyntaxError> {
        let mut nodes = vec![self.choice()?];
        while self.take(",") {
            nodes.push(self.choice()?);
        }
        self.demand(")")?;
        Ok(nodes)
    }

    fn name(&mut self, name: String) -> usize {
        self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Name(name)) if name == word);
        self.at += usize::from(found);
        found
    }

    fn demand(&mut self, sign: &'static str) -> Result<(), SyntaxError> {
        match self.take(sign) {
            true => Ok(()),
            false => Err(SyntaxError(format!("a '{sign}' is missing"))),
        }
    }
}

fn binary(operator: Operator, left: Node, right: Node) -> Node {
    Node::Binary(operator, Box::new(left), Box::new(right))
}

fn tokens(text: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => {
                let inner = &rest[1..];
                let end = inner
                    .find(first)
                    .ok_or_else(|| SyntaxError(format!("a closing {first} is missing")))?;
                let quoted = inner[..end].to_owned();
                tokens.push(if first == '"' { Token::Text(quoted) } else { Token::Name(quoted) });
                end + 2
            }
            '0'..='9' => {
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
                let digits = &rest[..end.unwrap_or(rest.len())];
                let number = digits.parse();
                tokens.push(Token::Number(
                    number.map_err(|_| SyntaxError(format!("'{digits}' is not a number")))?,
                ));
                digits.len()
            }
            'a'..='z' | 'A'..='Z' | '_' | '$' => {
                let end = match rest.starts_with(ENDPOINTS) {
                    true => rest.find(|c: char| c.is_whitespace() || "<>=!(),".contains(c)),
                    false => rest.find(|c: char| !c.is_alphanumeric() && !"_$.".contains(c)),
                };
                let name = &rest[..end.unwrap_or(rest.len())];
                tokens.push(Token::Name(name.to_owned()));
                name.len()
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or_else(|| SyntaxError(format!("'{first}' means nothing")))?;
                tokens.push(Token::Sign(sign));
                sign.len()
            }
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Number(number) => write!(f, "'{number}'"),
            Token::Text(text) => write!(f, "\"{text}\""),
            Token::Name(name) => write!(f, "'{name}'"),
            Token::Sign(sign) => write!(f, "'{sign}'"),
        }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
