//! Rust, Python, Go, Ruby, PHP, Elixir.

use super::{Folder, Found};

const AGAIN: &str = "Runs again when what is to be installed changes.";

pub(super) fn look(folder: &Folder, found: &mut Found) {
    python(folder, found);
    simple(
        folder,
        found,
        "Cargo.toml",
        "Cargo.lock",
        &["install", "install-rust"],
        ["cargo fetch --locked", "cargo fetch"],
    );
    simple(
        folder,
        found,
        "go.mod",
        "go.sum",
        &["install", "install-go"],
        ["go mod download", "go mod download"],
    );
    simple(
        folder,
        found,
        "Gemfile",
        "Gemfile.lock",
        &["install", "install-ruby"],
        ["bundle install", "bundle install"],
    );
    if folder.has("Gemfile") && folder.has("config.ru") {
        found.from("config.ru");
        let command = "bundle exec rackup --host 127.0.0.1 --port 9292";
        found.serve(&["web", "web-ruby"], "", command, Some(9292));
    }
    simple(
        folder,
        found,
        "composer.json",
        "composer.lock",
        &["install", "install-php"],
        ["composer install --no-interaction", "composer install --no-interaction"],
    );
    simple(
        folder,
        found,
        "mix.exs",
        "mix.lock",
        &["install", "install-elixir"],
        ["mix deps.get", "mix deps.get"],
    );
}

/// One command that fetches everything, with a lock or without.
fn simple(
    folder: &Folder,
    found: &mut Found,
    file: &str,
    lock: &str,
    names: &[&str],
    [locked, free]: [&str; 2],
) {
    if !folder.has(file) {
        return;
    }
    found.from(file);
    if folder.has(lock) {
        found.from(lock);
        found.install(names, AGAIN, locked, &[lock]);
    } else {
        found.install(names, AGAIN, free, &[file]);
    }
}

fn python(folder: &Folder, found: &mut Found) {
    let poetry = folder.text("pyproject.toml").contains("[tool.poetry]");
    // What installs, from what, and how a program is run then.
    let ways = [
        ("uv.lock", "uv sync --frozen", "uv run python"),
        ("poetry.lock", "poetry install --no-interaction", "poetry run python"),
        ("pdm.lock", "pdm sync", "pdm run python"),
        ("Pipfile.lock", "pipenv sync", "pipenv run python"),
        (
            "requirements.txt",
            "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
            ".venv/bin/python",
        ),
    ];
    let way = ways.into_iter().find(|(file, ..)| folder.has(file));
    let (file, install, python) = match way {
        Some(way) => way,
        None if !folder.has("pyproject.toml") => return,
        None if poetry => {
            ("pyproject.toml", "poetry install --no-interaction", "poetry run python")
        }
        None => (
            "pyproject.toml",
            "python3 -m venv .venv && .venv/bin/pip install -e .",
            ".venv/bin/python",
        ),
    };
    found.from(file);
    found.install(&["install", "install-python"], AGAIN, install, &[file]);
    if folder.has("manage.py") {
        found.from("manage.py");
        let command = format!("{python} manage.py runserver 127.0.0.1:8000");
        found.serve(&["web", "web-python"], "", &command, Some(8000));
    }
}
