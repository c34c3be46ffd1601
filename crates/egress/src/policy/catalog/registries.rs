//! Package registries, to read from. Publishing asks: it is done rarely, and it is how data leaves.

use super::{Gives, Service, Share};
use Share::{Ask, Read, ReadBelow, ReadElseAsk, ReadPlain};

const fn hosts(
    name: &'static str,
    about: &'static str,
    hosts: &'static [(&'static str, Share)],
) -> Service {
    Service { name, about, gives: Gives::Hosts { hosts, credentials: &[] } }
}

pub(super) const SERVICES: &[Service] = &[
    hosts(
        "npm",
        "Packages for Node.",
        &[("registry.npmjs.org", ReadElseAsk), ("registry.yarnpkg.com", ReadElseAsk)],
    ),
    hosts(
        "pypi",
        "Packages for Python.",
        &[("pypi.org", ReadElseAsk), ("files.pythonhosted.org", Read), ("upload.pypi.org", Ask)],
    ),
    hosts(
        "crates",
        "Packages for Rust.",
        &[("index.crates.io", Read), ("static.crates.io", Read), ("crates.io", ReadElseAsk)],
    ),
    hosts(
        "go",
        "Modules for Go.",
        &[
            ("proxy.golang.org", Read),
            ("sum.golang.org", Read),
            ("storage.googleapis.com", ReadBelow("/proxy-golang-org-prod/")),
        ],
    ),
    hosts(
        "maven",
        "Packages for the JVM.",
        &[
            ("repo.maven.apache.org", Read),
            ("repo1.maven.org", Read),
            ("central.sonatype.com", Ask),
            ("ossrh-staging-api.central.sonatype.com", Ask),
        ],
    ),
    hosts(
        "gradle",
        "Gradle and its plugins.",
        &[
            ("services.gradle.org", Read),
            ("downloads.gradle.org", Read),
            ("plugins.gradle.org", ReadElseAsk),
            ("plugins-artifacts.gradle.org", Read),
        ],
    ),
    hosts(
        "rubygems",
        "Packages for Ruby.",
        &[("rubygems.org", ReadElseAsk), ("index.rubygems.org", Read)],
    ),
    hosts(
        "debian",
        "Packages of Debian.",
        &[
            ("deb.debian.org", ReadPlain),
            ("security.debian.org", ReadPlain),
            ("snapshot.debian.org", ReadPlain),
        ],
    ),
    hosts(
        "ubuntu",
        "Packages of Ubuntu.",
        &[
            ("archive.ubuntu.com", ReadPlain),
            ("security.ubuntu.com", ReadPlain),
            ("ports.ubuntu.com", ReadPlain),
        ],
    ),
    hosts("alpine", "Packages of Alpine.", &[("dl-cdn.alpinelinux.org", ReadPlain)]),
    hosts(
        "docker-hub",
        "Images of Docker Hub.",
        &[
            ("registry-1.docker.io", ReadElseAsk),
            ("auth.docker.io", Read),
            ("index.docker.io", Read),
            ("production.cloudflare.docker.com", Read),
            ("docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com", Read),
        ],
    ),
    hosts(
        "ghcr",
        "Images of GitHub.",
        &[("ghcr.io", ReadElseAsk), ("pkg-containers.githubusercontent.com", Read)],
    ),
    hosts(
        "quay",
        "Images of Quay.",
        &[
            ("quay.io", ReadElseAsk),
            ("cdn.quay.io", Read),
            ("cdn01.quay.io", Read),
            ("cdn02.quay.io", Read),
            ("cdn03.quay.io", Read),
        ],
    ),
    hosts(
        "mcr",
        "Images of Microsoft.",
        &[("mcr.microsoft.com", Read), ("*.data.mcr.microsoft.com", Read)],
    ),
];
