//! The variables of a box without a network: where its proxy is, and whom to trust.
//!
//! They are set on the container, so that every program has them, however it was started. An image made
//! from such a box has them, too, and no engine takes a variable away again: each has a value that means
//! nothing, for a box that has a network.
//!
//! The surprising thing: most variables with a file of certificates replace what a program trusts by
//! itself, so they name the system's whole bundle. Only those that add to it name ours alone.

use crate::ctl::paths::{ASKPASS, EGRESS_CA, JAVA_TRUST, SYSTEM_TRUST};
use crate::ctl::ports::PROXY;

/// One variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: &'static str,
    /// Without a network.
    pub value: String,
    /// With a network, where an image brings the variable along.
    pub idle: &'static str,
}

/// Programs take one or the other case; curl takes `http_proxy` in lower case only.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
/// Who replaces what it trusts by this file.
const BUNDLES: [&str; 15] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "NIX_SSL_CERT_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "BUNDLE_SSL_CA_CERT",
    "HEX_CACERTS_PATH",
    "PERL_LWP_SSL_CA_FILE",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "npm_config_cafile",
    "YARN_HTTPS_CA_FILE_PATH",
];
/// Who trusts this file besides what it trusts anyway.
const ADDED: [&str; 2] = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];
/// Names below localhost are the box itself.
const HERE: &str = "localhost,127.0.0.1,::1,.localhost";
/// Where an engine in the box puts its containers.
const INNER: &str = "172.16.0.0/12";

/// All of them; `inner_engine` when the box has containers of its own.
pub fn variables(inner_engine: bool) -> Vec<Variable> {
    let proxy = format!("http://127.0.0.1:{PROXY}");
    let here = if inner_engine { format!("{HERE},{INNER}") } else { HERE.to_owned() };
    let java = [
        format!("-Djavax.net.ssl.trustStore={JAVA_TRUST}"),
        "-Djavax.net.ssl.trustStoreType=PKCS12".to_owned(),
        format!("-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={PROXY}"),
        format!("-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={PROXY}"),
        "-Dhttp.nonProxyHosts=localhost|127.*|[::1]|*.localhost".to_owned(),
    ];
    let one = |name, value: &str, idle| Variable { name, value: value.to_owned(), idle };
    let mut all: Vec<Variable> = PROXIES.into_iter().map(|name| one(name, &proxy, "")).collect();
    all.extend(["NO_PROXY", "no_proxy"].map(|name| one(name, &here, "")));
    all.extend(BUNDLES.map(|name| one(name, SYSTEM_TRUST, SYSTEM_TRUST)));
    all.extend(ADDED.map(|name| one(name, EGRESS_CA, SYSTEM_TRUST)));
    all.extend([
        one("NODE_USE_ENV_PROXY", "1", "0"),
        one("NODE_USE_SYSTEM_CA", "1", "0"),
        one("DENO_TLS_CA_STORE", "system,mozilla", "mozilla"),
        one("UV_NATIVE_TLS", "true", "false"),
        one("JAVA_TOOL_OPTIONS", &java.join(" "), ""),
        one("GIT_ASKPASS", ASKPASS, ""),
        one("GIT_TERMINAL_PROMPT", "0", "1"),
    ]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn programs_find_the_proxy_and_never_go_around_it() {
        for inner in [false, true] {
            let all = variables(inner);
            let names: HashSet<_> = all.iter().map(|v| v.name).collect();
            assert_eq!(names.len(), all.len());
            let of = |name: &str| all.iter().find(|v| v.name == name).unwrap().value.clone();
            for name in PROXIES {
                assert_eq!(of(name), "http://127.0.0.1:3128");
            }
            for name in ["NO_PROXY", "no_proxy"] {
                let hosts = of(name);
                assert!(hosts.starts_with("localhost,127.0.0.1,::1"), "{hosts}");
                assert!(!hosts.contains('*') && !hosts.contains("internal"), "{hosts}");
                assert_eq!(hosts.contains("172."), inner);
            }
        }
    }

    #[test]
    fn what_replaces_all_trust_names_the_whole_bundle() {
        let all = variables(false);
        for name in BUNDLES {
            assert!(all.iter().any(|v| v.name == name && v.value == SYSTEM_TRUST), "{name}");
        }
        // Each is one line, as files and command lines with variables want it.
        assert!(all.iter().all(|v| !v.value.chars().any(char::is_control)));
    }

    #[test]
    fn a_box_with_a_network_is_told_nothing_that_is_not_there() {
        for Variable { name, idle, .. } in variables(true) {
            assert!(!idle.contains("3128") && !idle.contains("/etc/agentbox"), "{name}={idle}");
        }
    }
}
