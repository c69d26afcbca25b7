//! The options of a run: docs/options.md and Python's `Loader` have what the definitions say.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Args, Command};
use featherload::options::{LoaderOptions, SourceOptions};

/// The options that have flags, as their structs define them.
fn definitions() -> Vec<Arg> {
    let command = SourceOptions::augment_args(Command::new("options"));
    let command = LoaderOptions::augment_args(command);
    command.get_arguments().cloned().collect()
}

fn keyword(option: &Arg) -> &str {
    match option.get_id().as_str() {
        "path" => "src",
        name => name,
    }
}

/// Names that the value may have; none of a free value.
fn names(option: &Arg) -> Vec<String> {
    let values = option.get_value_parser().possible_values();
    let takes_value = matches!(option.get_action(), ArgAction::Set);
    let values = values.filter(|_| takes_value).into_iter().flatten();
    values.map(|value| value.get_name().to_owned()).collect()
}

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

const TABLE: &str = "<!-- written by `cargo test --test cli options` -->\n";

/// A table for each group.
fn tables() -> String {
    let all = definitions();
    let mut groups: Vec<&str> = Vec::new();
    let flags = || all.iter().filter(|option| option.get_long().is_some());
    for group in flags().filter_map(Arg::get_help_heading) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let mut text = String::new();
    for group in groups {
        text += &format!("\n## {group}\n\n| keyword | flag | meaning |\n|---|---|---|\n");
        for option in flags().filter(|option| option.get_help_heading() == Some(group)) {
            let values = match (option.get_action(), names(option)) {
                (ArgAction::Set, names) if names.is_empty() => {
                    let name = option.get_value_names().unwrap()[0].as_str();
                    format!(" {}", name.replace('|', "\\|"))
                }
                (ArgAction::Set, names) => format!(" {}", names.join("\\|")),
                _ => String::new(),
            };
            let help = option.get_help().unwrap().to_string();
            let default = option.get_default_values().first();
            let default = default.filter(|_| matches!(option.get_action(), ArgAction::Set));
            let default = default.map(|value| format!(" (default: {})", value.to_string_lossy()));
            text += &format!(
                "| `{}` | `--{}{values}` | {}{} |\n",
                keyword(option),
                option.get_long().unwrap(),
                help.replace('|', "\\|"),
                default.unwrap_or_default(),
            );
        }
    }
    text
}

#[test]
fn the_page_of_options_has_the_definitions() {
    let page = file("docs/options.md");
    let text = fs::read_to_string(&page).unwrap();
    let (head, tail) = text.split_once(TABLE).unwrap();
    let want = tables();
    if std::env::var_os("FEATHERLOAD_WRITE_DOCS").is_some() {
        fs::write(&page, format!("{head}{TABLE}{want}")).unwrap();
        return;
    }
    assert_eq!(tail, want, "write it with FEATHERLOAD_WRITE_DOCS=1");
}

/// `Loader` in Python: its docstring, and the annotations of its keywords.
fn python() -> (String, Vec<(String, String)>) {
    let text = fs::read_to_string(file("python/src/featherload/_loader.py")).unwrap();
    let class = text.split_once("\nclass Loader:\n").unwrap().1;
    let (docstring, class) = class.split_once("    def __init__(\n").unwrap();
    let signature = class.split_once("    ) -> None:\n").unwrap().0;
    let keywords = signature.lines().filter_map(|line| {
        let (name, annotation) = line.trim().trim_end_matches(',').split_once(": ")?;
        let annotation = annotation.split(" = ").next()?;
        Some((name.to_owned(), annotation.to_owned()))
    });
    (docstring.to_owned(), keywords.collect())
}

#[test]
fn python_has_the_options_with_their_values() {
    let (docstring, keywords) = python();
    assert!(keywords.len() > 40, "{keywords:?}");
    for option in definitions() {
        let name = keyword(&option);
        assert!(docstring.contains(&format!("``{name}``")), "{name}");
        let Some((_, annotation)) = keywords.iter().find(|(keyword, _)| keyword == name) else {
            panic!("Loader has no keyword {name}");
        };
        // What torch and Python's own names stand for.
        if annotation == "Any" {
            continue;
        }
        let names = names(&option);
        let value = option.get_value_names().and_then(|names| names.first());
        let want = match (option.get_action(), value.map(|value| value.as_str())) {
            (ArgAction::SetTrue, _) => "bool".to_owned(),
            (_, Some("SIZE")) => "int | str".to_owned(),
            (_, Some("SECONDS")) => "float".to_owned(),
            (_, Some("N" | "R" | "W")) => "int".to_owned(),
            (_, Some("FILE" | "DIR" | "DIR|none" | "SRC")) => "_Path".to_owned(),
            _ if names.is_empty() => "str".to_owned(),
            _ => format!("Literal[\"{}\"]", names.join("\", \"")),
        };
        assert_eq!(annotation.trim_end_matches(" | None"), want, "{name}");
    }
}
