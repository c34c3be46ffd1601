//! The tree as a document again: one line, one space between words that need one, every string in
//! its plain form.

use super::{Body, Definition, Directive, Selection, Type, Value, Variable};
use std::fmt::{Formatter, Result};

pub(super) fn definitions(f: &mut Formatter<'_>, all: &[Definition]) -> Result {
    spaced(f, all, |f, definition| match definition {
        Definition::Query { name: None, variables, body }
            if variables.is_empty() && body.directives.is_empty() =>
        {
            write_body(f, body)
        }
        Definition::Query { name, variables, body } => {
            f.write_str("query")?;
            if let Some(name) = name {
                write!(f, " {name}")?;
            }
            if !variables.is_empty() {
                f.write_str("(")?;
                spaced(f, variables, write_variable)?;
                f.write_str(")")?;
            }
            write_body(f, body)
        }
        Definition::Fragment { name, on, body } => {
            write!(f, "fragment {name} on {on}")?;
            write_body(f, body)
        }
    })
}

fn spaced<T>(
    f: &mut Formatter<'_>,
    all: &[T],
    write: impl Fn(&mut Formatter<'_>, &T) -> Result,
) -> Result {
    for (at, one) in all.iter().enumerate() {
        if at > 0 {
            f.write_str(" ")?;
        }
        write(f, one)?;
    }
    Ok(())
}

fn write_body(f: &mut Formatter<'_>, body: &Body) -> Result {
    write_directives(f, &body.directives)?;
    if body.selections.is_empty() {
        return Ok(());
    }
    f.write_str("{")?;
    spaced(f, &body.selections, write_selection)?;
    f.write_str("}")
}

fn write_selection(f: &mut Formatter<'_>, selection: &Selection) -> Result {
    match selection {
        Selection::Field { alias, name, arguments, body } => {
            if let Some(alias) = alias {
                write!(f, "{alias}:")?;
            }
            f.write_str(name)?;
            write_arguments(f, arguments)?;
            write_body(f, body)
        }
        Selection::Spread { name, directives } => {
            write!(f, "...{name}")?;
            write_directives(f, directives)
        }
        Selection::Inline { on, body } => {
            f.write_str("...")?;
            if let Some(on) = on {
                write!(f, "on {on}")?;
            }
            write_body(f, body)
        }
    }
}

fn write_variable(f: &mut Formatter<'_>, variable: &Variable) -> Result {
    write!(f, "${}:", variable.name)?;
    write_type(f, &variable.kind)?;
    if let Some(default) = &variable.default {
        f.write_str("=")?;
        write_value(f, default)?;
    }
    write_directives(f, &variable.directives)
}

fn write_type(f: &mut Formatter<'_>, kind: &Type) -> Result {
    match kind {
        Type::Named(name) => f.write_str(name),
        Type::List(inner) => {
            f.write_str("[")?;
            write_type(f, inner)?;
            f.write_str("]")
        }
        Type::NonNull(inner) => {
            write_type(f, inner)?;
            f.write_str("!")
        }
    }
}

fn write_directives(f: &mut Formatter<'_>, all: &[Directive]) -> Result {
    for directive in all {
        write!(f, "@{}", directive.name)?;
        write_arguments(f, &directive.arguments)?;
    }
    Ok(())
}

fn write_arguments(f: &mut Formatter<'_>, all: &[(String, Value)]) -> Result {
    if all.is_empty() {
        return Ok(());
    }
    f.write_str("(")?;
    spaced(f, all, write_pair)?;
    f.write_str(")")
}

fn write_pair(f: &mut Formatter<'_>, (name, value): &(String, Value)) -> Result {
    write!(f, "{name}:")?;
    write_value(f, value)
}

fn write_value(f: &mut Formatter<'_>, value: &Value) -> Result {
    match value {
        Value::Variable(name) => write!(f, "${name}"),
        Value::Number(text) | Value::Word(text) => f.write_str(text),
        Value::Text(text) => write_text(f, text),
        Value::List(all) => {
            f.write_str("[")?;
            spaced(f, all, write_value)?;
            f.write_str("]")
        }
        Value::Object(all) => {
            f.write_str("{")?;
            spaced(f, all, write_pair)?;
            f.write_str("}")
        }
    }
}

fn write_text(f: &mut Formatter<'_>, text: &str) -> Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}
