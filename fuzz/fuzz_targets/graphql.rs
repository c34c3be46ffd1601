//! Whatever passes the gate is one query and nothing else, also for a parser that is not ours.
//!
//! The other parser reads on after a mistake and guesses (it knows no comma before a colon, say, and
//! then takes the rest of a selection for definitions), so it is asked about a box's document only
//! where it found none. What the host sends must be without fault for both.
#![no_main]

use apollo_parser::cst::{Definition, OperationType};
use connectors::graphql::Query;
use libfuzzer_sys::fuzz_target;

/// What the other parser says: its mistakes, and whether the document holds more than queries.
fn judged(source: &str) -> (Vec<String>, bool) {
    let tree = apollo_parser::Parser::new(source).parse();
    let changes = tree.document().definitions().any(|definition| match definition {
        Definition::OperationDefinition(operation) => operation
            .operation_type()
            .is_some_and(|kind: OperationType| kind.mutation_token().is_some() || kind.subscription_token().is_some()),
        Definition::FragmentDefinition(_) => false,
        _ => true,
    });
    (tree.errors().map(|error| error.to_string()).collect(), changes)
}

fuzz_target!(|source: &str| {
    let Ok(query) = Query::parse(source) else { return };
    let (mistakes, changes) = judged(source);
    assert!(!mistakes.is_empty() || !changes, "{source}");
    let printed = query.to_string();
    assert_eq!(judged(&printed), (Vec::new(), false), "{printed}");
    assert_eq!(Query::parse(&printed), Ok(query));
});
