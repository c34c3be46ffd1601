//! One GraphQL query, and nothing else: what the gate of a read-only GraphQL call lets through.
//!
//! A document becomes a tree or a [`Fault`]; what the host sends is the tree printed anew, so the
//! server can never read it otherwise than we did. There is exactly one operation and it is a
//! query; mutations, subscriptions, type definitions and descriptions have no place in the tree.
//!
//! Why an own parser: general ones follow the language, which lets a byte order mark stand anywhere,
//! and are made to read on after a mistake. Failing closed on every character outside strings needs
//! an own lexer anyway, and the grammar of a query on top of it is small. A general parser checks
//! this one in the tests.
//!
//! The surprising thing: depth, selections and aliases are counted as the server will see them,
//! with fragments unfolded.

use protocol::text::shortened;
use std::collections::HashMap;
use std::fmt;

mod lex;
mod print;

use lex::Token;

pub const MAX_SOURCE: usize = 64 * 1024;
const MAX_DEPTH: u32 = 15;
const MAX_SELECTIONS: u32 = 500;
const MAX_ALIASES: u32 = 64;
/// Lists and objects inside each other, in values and types.
const MAX_NESTING: u32 = 32;

/// Fields whose value is a credential.
const SECRET_FIELDS: &[&str] =
    &["secret", "token", "accesstoken", "apikey", "apikeys", "clientsecret", "signingsecret"];

/// Why a document was refused, as half a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the query is empty")]
    Empty,
    #[error("the query has {0} bytes; at most {MAX_SOURCE} are taken")]
    TooLong(usize),
    #[error("{0} at line {1}, column {2} has no place in a query")]
    Lexical(String, usize, usize),
    #[error("{wanted} expected, '{}' found", shortened(.found, 60))]
    Syntax { wanted: &'static str, found: String },
    #[error("'{0}' is no query")]
    Operation(String),
    #[error("'{0}' defines a type or describes something")]
    Definition(String),
    #[error("a second operation stands in it; give one")]
    SecondOperation,
    #[error("no operation stands in it")]
    NoOperation,
    #[error("it is nested deeper than {0}")]
    TooDeep(u32),
    #[error("it has more than {MAX_SELECTIONS} selections with its fragments unfolded")]
    TooManySelections,
    #[error("it has more than {MAX_ALIASES} aliases with its fragments unfolded")]
    TooManyAliases,
    #[error("the field '{0}' holds a credential")]
    Secret(String),
    #[error("the fragment '{0}' is not defined, defined twice, or contains itself")]
    Fragment(String),
}

/// A document that is one query and its fragments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    definitions: Vec<Definition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Definition {
    Query { name: Option<String>, variables: Vec<Variable>, body: Body },
    Fragment { name: String, on: String, body: Body },
}

/// Directives and a selection set.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Body {
    directives: Vec<Directive>,
    selections: Vec<Selection>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    kind: Type,
    default: Option<Value>,
    directives: Vec<Directive>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Type {
    Named(String),
    List(Box<Type>),
    NonNull(Box<Type>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Directive {
    name: String,
    arguments: Vec<(String, Value)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Selection {
    Field { alias: Option<String>, name: String, arguments: Vec<(String, Value)>, body: Body },
    Spread { name: String, directives: Vec<Directive> },
    Inline { on: Option<String>, body: Body },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Variable(String),
    /// As it was written.
    Number(String),
    Text(String),
    /// Also true, false and null.
    Word(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Query {
    pub fn parse(source: &str) -> Result<Self, Fault> {
        if source.len() > MAX_SOURCE {
            return Err(Fault::TooLong(source.len()));
        }
        let tokens = lex::tokens(source.strip_prefix('\u{feff}').unwrap_or(source))?;
        if tokens.is_empty() {
            return Err(Fault::Empty);
        }
        let query = Parser { tokens: tokens.into_iter().peekable() }.document()?;
        query.check()?;
        Ok(query)
    }

    fn check(&self) -> Result<(), Fault> {
        let operations =
            self.definitions.iter().filter(|d| matches!(d, Definition::Query { .. })).count();
        match operations {
            0 => return Err(Fault::NoOperation),
            1 => {}
            _ => return Err(Fault::SecondOperation),
        }
        let mut sizes = Sizes { bodies: HashMap::new(), known: HashMap::new() };
        for definition in &self.definitions {
            if let Definition::Fragment { name, body, .. } = definition
                && sizes.bodies.insert(name, body).is_some()
            {
                return Err(Fault::Fragment(name.clone()));
            }
        }
        // Fragments nobody uses count, too: they are sent.
        for definition in &self.definitions {
            let (Definition::Query { body, .. } | Definition::Fragment { body, .. }) = definition;
            sizes.of(&body.selections)?.check()?;
        }
        Ok(())
    }
}

/// What a selection set comes to with its fragments unfolded.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    depth: u32,
    selections: u32,
    aliases: u32,
}

impl Size {
    fn check(self) -> Result<Self, Fault> {
        if self.depth > MAX_DEPTH {
            return Err(Fault::TooDeep(MAX_DEPTH));
        }
        if self.selections > MAX_SELECTIONS {
            return Err(Fault::TooManySelections);
        }
        if self.aliases > MAX_ALIASES {
            return Err(Fault::TooManyAliases);
        }
        Ok(self)
    }
}

struct Sizes<'q> {
    bodies: HashMap<&'q str, &'q Body>,
    /// None while it is being counted: a fragment met again then contains itself.
    known: HashMap<&'q str, Option<Size>>,
}

impl<'q> Sizes<'q> {
    fn of(&mut self, selections: &'q [Selection]) -> Result<Size, Fault> {
        let mut all = Size::default();
        for selection in selections {
            let inner = match selection {
                Selection::Field { body, .. } | Selection::Inline { body, .. } => {
                    self.of(&body.selections)?
                }
                Selection::Spread { name, .. } => self.fragment(name)?,
            };
            let alias = matches!(selection, Selection::Field { alias: Some(_), .. });
            all.depth = all.depth.max(inner.depth + 1);
            all.selections += inner.selections + 1;
            all.aliases += inner.aliases + u32::from(alias);
            // Checked as it grows, so that fragments cannot multiply beyond counting.
            all.check()?;
        }
        Ok(all)
    }

    fn fragment(&mut self, name: &'q str) -> Result<Size, Fault> {
        match self.known.get(name) {
            Some(Some(size)) => return Ok(*size),
            Some(None) => return Err(Fault::Fragment(name.to_owned())),
            None => {}
        }
        let Some(body) = self.bodies.get(name) else {
            return Err(Fault::Fragment(name.to_owned()));
        };
        self.known.insert(name, None);
        let size = self.of(&body.selections)?;
        self.known.insert(name, Some(size));
        Ok(size)
    }
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
}

impl Parser {
    fn document(mut self) -> Result<Query, Fault> {
        let mut definitions = Vec::new();
        while let Some(token) = self.tokens.peek() {
            definitions.push(match token {
                Token::Mark('{') => {
                    let body = Body { directives: Vec::new(), selections: self.selections(0)? };
                    Definition::Query { name: None, variables: Vec::new(), body }
                }
                Token::Name(word) => match word.as_str() {
                    "query" => self.operation()?,
                    "fragment" => self.fragment()?,
                    "mutation" | "subscription" => return Err(Fault::Operation(word.clone())),
                    "schema" | "scalar" | "type" | "interface" | "union" | "enum" | "input"
                    | "directive" | "extend" => return Err(Fault::Definition(word.clone())),
                    _ => return Err(self.unexpected("'query', 'fragment' or '{'")),
                },
                Token::Text(_) => return Err(Fault::Definition("\"".to_owned())),
                _ => return Err(self.unexpected("'query', 'fragment' or '{'")),
            });
        }
        Ok(Query { definitions })
    }

    fn operation(&mut self) -> Result<Definition, Fault> {
        self.tokens.next();
        let name = self.name_if_any();
        let variables = if self.at('(') {
            self.many('(', ')', "a variable", Self::variable)?
        } else {
            Vec::new()
        };
        let directives = self.directives(true)?;
        let body = Body { directives, selections: self.selections(0)? };
        Ok(Definition::Query { name, variables, body })
    }

    fn fragment(&mut self) -> Result<Definition, Fault> {
        self.tokens.next();
        if self.at_word("on") {
            return Err(self.unexpected("a fragment's name"));
        }
        let name = self.name("a fragment's name")?;
        if !self.at_word("on") {
            return Err(self.unexpected("'on'"));
        }
        self.tokens.next();
        let on = self.name("a type")?;
        let directives = self.directives(false)?;
        let body = Body { directives, selections: self.selections(0)? };
        Ok(Definition::Fragment { name, on, body })
    }

    fn variable(&mut self) -> Result<Variable, Fault> {
        self.mark('$', "'$'")?;
        let name = self.name("a variable's name")?;
        self.mark(':', "':'")?;
        let kind = self.kind(0)?;
        let default = if self.take('=') { Some(self.value(true, 0)?) } else { None };
        Ok(Variable { name, kind, default, directives: self.directives(true)? })
    }

    fn kind(&mut self, depth: u32) -> Result<Type, Fault> {
        let depth = nested(depth)?;
        let kind = if self.take('[') {
            let inner = self.kind(depth)?;
            self.mark(']', "']'")?;
            Type::List(Box::new(inner))
        } else {
            Type::Named(self.name("a type")?)
        };
        Ok(if self.take('!') { Type::NonNull(Box::new(kind)) } else { kind })
    }

    fn directives(&mut self, constant: bool) -> Result<Vec<Directive>, Fault> {
        let mut all = Vec::new();
        while self.take('@') {
            let name = self.name("a directive's name")?;
            all.push(Directive { name, arguments: self.arguments(constant)? });
        }
        Ok(all)
    }

    fn arguments(&mut self, constant: bool) -> Result<Vec<(String, Value)>, Fault> {
        if !self.at('(') {
            return Ok(Vec::new());
        }
        self.many('(', ')', "an argument", |p| p.pair(constant, 0))
    }

    fn pair(&mut self, constant: bool, depth: u32) -> Result<(String, Value), Fault> {
        let name = self.name("a name")?;
        self.mark(':', "':'")?;
        Ok((name, self.value(constant, depth)?))
    }

    fn selections(&mut self, depth: u32) -> Result<Vec<Selection>, Fault> {
        if depth >= MAX_DEPTH {
            return Err(Fault::TooDeep(MAX_DEPTH));
        }
        self.many('{', '}', "a field", |p| p.selection(depth + 1))
    }

    fn selection(&mut self, depth: u32) -> Result<Selection, Fault> {
        if matches!(self.tokens.peek(), Some(Token::Spread)) {
            self.tokens.next();
            return self.spread(depth);
        }
        let first = self.name("a field")?;
        let (alias, name) =
            if self.take(':') { (Some(first), self.name("a field")?) } else { (None, first) };
        if SECRET_FIELDS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(Fault::Secret(name));
        }
        let arguments = self.arguments(false)?;
        let directives = self.directives(false)?;
        let selections = if self.at('{') { self.selections(depth)? } else { Vec::new() };
        Ok(Selection::Field { alias, name, arguments, body: Body { directives, selections } })
    }

    fn spread(&mut self, depth: u32) -> Result<Selection, Fault> {
        let on = self.at_word("on");
        if on {
            self.tokens.next();
        } else if let Some(name) = self.name_if_any() {
            return Ok(Selection::Spread { name, directives: self.directives(false)? });
        }
        let on = if on { Some(self.name("a type")?) } else { None };
        let directives = self.directives(false)?;
        let body = Body { directives, selections: self.selections(depth)? };
        Ok(Selection::Inline { on, body })
    }

    fn value(&mut self, constant: bool, depth: u32) -> Result<Value, Fault> {
        let depth = nested(depth)?;
        match self.tokens.peek() {
            Some(Token::Mark('$')) if !constant => {
                self.tokens.next();
                Ok(Value::Variable(self.name("a variable's name")?))
            }
            Some(Token::Mark('[')) => {
                Ok(Value::List(self.any('[', ']', |p| p.value(constant, depth))?))
            }
            Some(Token::Mark('{')) => {
                Ok(Value::Object(self.any('{', '}', |p| p.pair(constant, depth))?))
            }
            Some(Token::Number(_) | Token::Text(_) | Token::Name(_)) => {
                Ok(match self.tokens.next() {
                    Some(Token::Number(text)) => Value::Number(text),
                    Some(Token::Text(text)) => Value::Text(text),
                    Some(Token::Name(word)) => Value::Word(word),
                    _ => return Err(self.unexpected("a value")),
                })
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    /// At least one of something between two marks.
    fn many<T>(
        &mut self,
        open: char,
        close: char,
        what: &'static str,
        read: impl Fn(&mut Self) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let all = self.any(open, close, read)?;
        if all.is_empty() {
            return Err(Fault::Syntax { wanted: what, found: close.to_string() });
        }
        Ok(all)
    }

    fn any<T>(
        &mut self,
        open: char,
        close: char,
        read: impl Fn(&mut Self) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        if !self.take(open) {
            return Err(self.unexpected("'{', '[' or '('"));
        }
        let mut all = Vec::new();
        while !self.take(close) {
            all.push(read(self)?);
        }
        Ok(all)
    }

    fn at(&mut self, mark: char) -> bool {
        matches!(self.tokens.peek(), Some(Token::Mark(c)) if *c == mark)
    }

    fn at_word(&mut self, word: &str) -> bool {
        matches!(self.tokens.peek(), Some(Token::Name(name)) if name == word)
    }

    fn take(&mut self, mark: char) -> bool {
        let there = self.at(mark);
        if there {
            self.tokens.next();
        }
        there
    }

    fn mark(&mut self, mark: char, wanted: &'static str) -> Result<(), Fault> {
        if self.take(mark) { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    fn name_if_any(&mut self) -> Option<String> {
        match self.tokens.next_if(|t| matches!(t, Token::Name(_))) {
            Some(Token::Name(name)) => Some(name),
            _ => None,
        }
    }

    fn name(&mut self, wanted: &'static str) -> Result<String, Fault> {
        self.name_if_any().ok_or_else(|| self.unexpected(wanted))
    }

    fn unexpected(&mut self, wanted: &'static str) -> Fault {
        let found = self.tokens.peek().map_or_else(|| "the end".to_owned(), Token::shown);
        Fault::Syntax { wanted, found }
    }
}

fn nested(depth: u32) -> Result<u32, Fault> {
    if depth >= MAX_NESTING { Err(Fault::TooDeep(MAX_NESTING)) } else { Ok(depth + 1) }
}

impl fmt::Display for Query {
    /// The document anew, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print::definitions(f, &self.definitions)
    }
}

#[cfg(test)]
mod tests;
