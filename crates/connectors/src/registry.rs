//! Every service there is, in the order people see them.

use crate::connector::Connector;

pub static CONNECTORS: &[&Connector] = &[
    &crate::gh::CONNECTOR,
    &crate::notion::CONNECTOR,
    &crate::linear::CONNECTOR,
    &crate::trello::CONNECTOR,
    &crate::clickup::CONNECTOR,
];

/// By its exact name.
pub fn find(service: &str) -> Option<&'static Connector> {
    CONNECTORS.iter().find(|c| c.service == service).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::Means;
    use protocol::SecretId;

    #[test]
    fn every_service_is_there_in_the_order_people_see_them() {
        let names: Vec<&str> = CONNECTORS.iter().map(|c| c.service).collect();
        assert_eq!(names, ["github", "notion", "linear", "trello", "clickup"]);
    }

    #[test]
    fn tables_hold_together() {
        for connector in CONNECTORS {
            for secret in connector.secrets {
                assert!(secret.id.parse::<SecretId>().is_ok(), "{}", secret.id);
                if let Means::Cli(program) = &connector.means {
                    let own = program.env_prefixes.iter().any(|p| secret.env.starts_with(p));
                    assert!(own, "{} is outside {}'s namespace", secret.env, connector.service);
                }
            }
            let mut names: Vec<&str> = connector.infos().map(|i| i.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), connector.infos().count(), "{}", connector.service);
        }
    }

    /// People read of credentials and keys; a provider's own name for one is in quotes.
    #[test]
    fn credentials_are_called_so() {
        for secret in CONNECTORS.iter().flat_map(|c| c.secrets) {
            let ours = secret.about.split('“').filter_map(|part| part.split('”').next_back());
            let said = ours.collect::<String>().to_lowercase();
            for word in ["secret", "token", "password"] {
                assert!(!said.contains(word), "{}: {}", secret.id, secret.about);
            }
        }
    }
}
