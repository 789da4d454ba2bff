//! `config.payload`: files of values, with one row for each session.

use serde_json::{Map, Number, Value};

use super::compiler::Compiler;
use super::document::Node;
use super::fields::Fields;
use super::refusal::Refusal;
use super::settings::Settings;
use crate::scenario::data_rows::{DataRows, RowOrder};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cast {
    /// Cells that look like numbers are numbers.
    Numbers,
    Texts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Header {
    Skipped,
    None,
}

pub(super) fn read(
    compiler: &mut Compiler,
    node: &Node,
    settings: &mut Settings,
) -> Result<(), Refusal> {
    for node in node.one_or_more() {
        read_one(compiler, node, settings)?;
    }
    Ok(())
}

fn read_one(compiler: &mut Compiler, node: &Node, settings: &mut Settings) -> Result<(), Refusal> {
    let mut fields = Fields::of(node, "a payload")?;
    fields.allow(&["skipEmptyLines"]);
    let path =
        fields.take("path").ok_or_else(|| node.refuse("a payload needs the path of its file"))?;
    let (columns, order) = (fields.take("fields"), fields.take("order"));
    let (header, delimiter) = (fields.take("skipHeader"), fields.take("delimiter"));
    let (cast, all, name) = (fields.take("cast"), fields.take("loadAll"), fields.take("name"));
    fields.finish()?;
    let mut truth = |node: Option<&Node>, what, otherwise| {
        node.map_or(Ok(otherwise), |node| compiler.truth(node, what))
    };
    let header = if truth(header, "skipHeader", false)? { Header::Skipped } else { Header::None };
    let cast = if truth(cast, "cast", true)? { Cast::Numbers } else { Cast::Texts };
    let all = truth(all, "loadAll", false)?;
    let columns: Vec<String> = columns
        .map_or(&[][..], |node| node.one_or_more())
        .iter()
        .map(|node| compiler.fixed(node, "a field"))
        .collect::<Result<_, _>>()?;
    let rows = load(compiler, path, delimiter, header, cast, columns.len())?;
    if all {
        let name = name.ok_or_else(|| node.refuse("loadAll needs a name for its variable"))?;
        if let Some(order) = order {
            return Err(order.refuse("loadAll gives all rows at once; take order out"));
        }
        let name = compiler.fixed(name, "name")?;
        let rows = rows.into_iter().map(|row| whole_row(&columns, row)).collect();
        settings.variables.push((compiler.set(&name), Value::Array(rows)));
        return Ok(());
    }
    if columns.is_empty() {
        return Err(node.refuse("a payload needs fields: the variables of its columns"));
    }
    if rows.is_empty() {
        return Err(path.refuse("the payload has no rows; add some"));
    }
    let order = match order.map(|node| Ok((compiler.fixed(node, "order")?, node))).transpose()? {
        None => RowOrder::Random,
        Some((text, _)) if text == "random" => RowOrder::Random,
        Some((text, _)) if text == "sequence" => RowOrder::Sequence,
        Some((text, node)) => {
            return Err(node.refuse(format!("order has to be random or sequence, not '{text}'")));
        }
    };
    let columns = columns.iter().map(|column| compiler.set(column)).collect();
    settings.data_rows.push(DataRows { columns, rows, order });
    Ok(())
}

/// A row as an object, if its columns have names.
fn whole_row(columns: &[String], row: Vec<Value>) -> Value {
    match columns.is_empty() {
        true => Value::Array(row),
        false => Value::Object(columns.iter().cloned().zip(row).collect::<Map<_, _>>()),
    }
}

fn load(
    compiler: &mut Compiler,
    path: &Node,
    delimiter: Option<&Node>,
    header: Header,
    cast: Cast,
    columns: usize,
) -> Result<Vec<Vec<Value>>, Refusal> {
    let delimiter = match delimiter {
        None => b',',
        Some(node) => match compiler.fixed(node, "delimiter")?.as_bytes() {
            [byte] => *byte,
            _ => return Err(node.refuse("delimiter has to be one character")),
        },
    };
    let name = compiler.fixed(path, "path")?;
    let refuse = |why: String| path.refuse(format!("the payload {name} cannot be read: {why}"));
    let bytes = compiler.file(path, &name, "write the values as lists in config.variables")?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(header == Header::Skipped)
        .delimiter(delimiter)
        .flexible(true)
        .from_reader(bytes);
    let mut width = None;
    let rows = reader.records().map(|record| {
        let record = record.map_err(|error| refuse(error.to_string()))?;
        let cells = record.len();
        let width = *width.get_or_insert(cells.max(columns));
        if cells != width {
            // An unquoted comma would shift the cells after it.
            return Err(refuse(format!(
                "the number of values in its line {} is {cells}, and not {width}; give every field one, in quotes if it holds the delimiter",
                line_of(&record, bytes)
            )));
        }
        Ok(record.iter().map(|cell| value_of(cell, cast)).collect())
    });
    rows.collect()
}

/// The reader's position before it skipped empty lines, and those lines.
fn line_of(record: &csv::StringRecord, bytes: &[u8]) -> u64 {
    let Some(position) = record.position() else { return 0 };
    let rest = bytes.iter().skip(position.byte() as usize);
    let empty = rest.take_while(|byte| b"\r\n".contains(byte)).filter(|byte| **byte == b'\n');
    position.line() + empty.count() as u64
}

fn value_of(cell: &str, cast: Cast) -> Value {
    let digits = cell.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    if cast == Cast::Texts || !digits {
        return Value::from(cell);
    }
    if let Ok(whole) = cell.parse::<i64>() {
        return Value::from(whole);
    }
    let number = cell.parse::<f64>().ok().and_then(Number::from_f64);
    number.map_or_else(|| Value::from(cell), Value::Number)
}
