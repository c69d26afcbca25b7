//! The options of runs, scenes and caches: docs/options.md and Python's keywords have what the
//! definitions say.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Args, Command};
use featherload::LoaderBuilder;
use featherload::cache::BuildOptions;
use featherload::options::{LoaderOptions, LoaderSetup, SourceOptions};
use featherload::rays::RaysBuilder;
use featherload::scene::{RaysOptions, SceneOptions, ViewsOptions};
use featherload::views::ViewsBuilder;

/// The options of a struct that have flags, as it defines them.
fn definitions<T: Args>() -> Vec<Arg> {
    let command = T::augment_args(Command::new("options"));
    command.get_arguments().cloned().collect()
}

fn keyword(option: &Arg) -> &str {
    match option.get_id().as_str() {
        "path" => "src",
        "float" => "dtype",
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

fn value_name(option: &Arg) -> Option<&str> {
    let names = option.get_value_names()?;
    names.first().map(|name| name.as_str())
}

/// The default of an option, or of its keyword, where it is a number or a name.
fn default_of(option: &Arg) -> Option<String> {
    match option.get_action() {
        ArgAction::SetTrue => return Some("false".to_owned()),
        ArgAction::SetFalse => return Some("true".to_owned()),
        _ => {}
    }
    if let Some(value) = option.get_default_values().first() {
        return Some(value.to_string_lossy().into_owned());
    }
    let help = option.get_help()?.to_string();
    let (_, default) = help.rsplit_once("(default: ")?;
    let of_python = default.split([')', ';', ',']).find_map(|part| {
        let value = part.trim().strip_suffix(" in Python")?;
        Some(value.to_owned())
    });
    of_python.or_else(|| default.split([')', ';', ',']).next().map(str::to_owned))
}

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

const TABLE: &str = "<!-- written by `cargo test --test cli options` -->\n";

fn table<'a>(title: &str, options: impl Iterator<Item = &'a Arg>) -> String {
    let mut text = format!("\n## {title}\n\n| keyword | flag | meaning |\n|---|---|---|\n");
    for option in options.filter(|option| option.get_long().is_some()) {
        let values = match (option.get_action(), names(option)) {
            (ArgAction::Set, names) if names.is_empty() => {
                format!(" {}", value_name(option).unwrap().replace('|', "\\|"))
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
    text
}

/// A table for each group of a loader's options, and those of scenes and caches.
fn tables() -> String {
    let mut loader = definitions::<SourceOptions>();
    loader.extend(definitions::<LoaderOptions>());
    let mut groups: Vec<&str> = Vec::new();
    let flags = loader.iter().filter(|option| option.get_long().is_some());
    for group in flags.filter_map(Arg::get_help_heading) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let of_group = |group: &&str| {
        let options = loader.iter();
        table(
            group,
            options.filter(|option| option.get_help_heading() == Some(group)),
        )
    };
    let mut text: String = groups.iter().map(of_group).collect();
    let (rays, views) = (definitions::<RaysOptions>(), definitions::<ViewsOptions>());
    let has = |all: &[Arg], option: &Arg| all.iter().any(|one| one.get_id() == option.get_id());
    text += &table("Scenes", definitions::<SceneOptions>().iter());
    text += &table(
        "Rays and views",
        rays.iter().filter(|option| has(&views, option)),
    );
    text += &table(
        "Rays alone",
        rays.iter().filter(|option| !has(&views, option)),
    );
    text += &table(
        "Views alone",
        views.iter().filter(|option| !has(&rays, option)),
    );
    text + &table("Caches", definitions::<BuildOptions>().iter())
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

/// A class or function of the Python package.
struct Python {
    name: &'static str,
    /// Its docstring.
    docs: String,
    keywords: Vec<Keyword>,
    /// Whether it takes other keywords too.
    takes_others: bool,
}

struct Keyword {
    name: String,
    /// Without `| None`.
    annotation: String,
    /// As Python writes it; `None` leaves it to the library.
    default: String,
}

impl Python {
    /// What begins with `head`, in a file of the package.
    fn read(name: &'static str, module: &str, head: &str) -> Self {
        let read = |module: &str| {
            let path = format!("python/src/featherload/{module}.py");
            fs::read_to_string(file(&path)).unwrap()
        };
        let text = read(module);
        let (_, text) = text.split_once(head).unwrap();
        let (before, text) = match head.contains("def ") {
            true => ("", text),
            false => text.split_once("    def __init__(\n").unwrap(),
        };
        let (signature, body) = text.split_once(") -> ").unwrap();
        let docs = match before {
            "" => body.split("\n\n\n").next().unwrap(),
            docs => docs,
        };
        let scene = read("_scene");
        let alias = |name: &str| {
            let text = scene.split_once(&format!("\n{name} = Literal["))?.1;
            Some(format!("Literal[{}", text.lines().next()?))
        };
        let keywords = signature.lines().filter_map(|line| {
            let (name, rest) = line.trim().trim_end_matches(',').split_once(": ")?;
            let (annotation, default) = rest.split_once(" = ").unwrap_or((rest, ""));
            let annotation = annotation.trim_end_matches(" | None");
            Some(Keyword {
                name: name.to_owned(),
                annotation: alias(annotation).unwrap_or_else(|| annotation.to_owned()),
                default: default.trim_matches('"').to_owned(),
            })
        });
        Self {
            name,
            docs: docs.to_owned(),
            keywords: keywords.collect(),
            takes_others: signature.contains("**options"),
        }
    }

    /// It has an option, with its values and its default.
    fn check(&self, option: &Arg) {
        let (python, name) = (self.name, keyword(option));
        let is_documented = self.docs.contains(&format!("``{name}``"));
        assert!(is_documented, "{python}: {name} is not documented");
        let Some(keyword) = self.keywords.iter().find(|keyword| keyword.name == name) else {
            assert!(self.takes_others, "{python} has no keyword {name}");
            return;
        };
        // Its form is another: a dtype.
        if option.get_id() == "float" {
            return;
        }
        if !["", "None"].contains(&keyword.default.as_str()) {
            let default = default_of(option).map(|value| value.to_lowercase());
            let given = keyword.default.to_lowercase();
            assert_eq!(default, Some(given), "{python}: the default of {name}");
        }
        // What torch and Python's own names stand for.
        if keyword.annotation == "Any" {
            return;
        }
        // In Python, also the labels themselves.
        if name == "labels" && python == "Loader" {
            return;
        }
        let names = names(option);
        let want = match (option.get_action(), value_name(option)) {
            (ArgAction::SetTrue | ArgAction::SetFalse, _) | (_, Some("BOOL")) => "bool".to_owned(),
            _ if name == "resize" => "str".to_owned(),
            _ if name == "columns" => "Sequence[str]".to_owned(),
            _ if name == "captions" => "str | _captions.Captions".to_owned(),
            _ if name == "masks" => "_masks.Masks".to_owned(),
            _ if name == "rasters" => "_rasters.Rasters".to_owned(),
            _ if name == "objects" => "_object_lists.ObjectSource".to_owned(),
            (_, Some("SIZE")) => "int | str".to_owned(),
            (_, Some("SECONDS" | "X")) => "float".to_owned(),
            (_, Some("N" | "R" | "W" | "SEED")) => "int".to_owned(),
            // Lists and tables, too.
            _ if (python, name) == ("Loader", "src") => "_items.Source".to_owned(),
            _ if (python, name) == ("Loader", "sampler") => {
                "str | Sampler | Iterable[int]".to_owned()
            }
            (_, Some("FILE" | "DIR" | "DIR|none" | "SRC")) => "_Path".to_owned(),
            (_, Some("RULE")) => r#"float | int | Literal["filename", "listed", "all"]"#.to_owned(),
            _ if names.is_empty() => "str".to_owned(),
            _ => format!("Literal[\"{}\"]", names.join("\", \"")),
        };
        assert_eq!(keyword.annotation, want, "{python}: {name}");
    }

    fn check_all<T: Args>(&self) {
        definitions::<T>()
            .iter()
            .for_each(|option| self.check(option));
    }
}

#[test]
fn python_has_the_options_with_their_values_and_defaults() {
    let loader = Python::read("Loader", "_loader", "\nclass Loader:\n");
    assert!(loader.keywords.len() > 40);
    loader.check_all::<SourceOptions>();
    loader.check_all::<LoaderOptions>();
    let scene = Python::read("Scene", "_scene", "\nclass Scene:\n");
    scene.check_all::<SceneOptions>();
    let rays = Python::read("Rays", "_rays", "\nclass Rays(");
    rays.check_all::<SceneOptions>();
    rays.check_all::<RaysOptions>();
    let views = Python::read("Views", "_views", "\nclass Views(");
    views.check_all::<SceneOptions>();
    views.check_all::<ViewsOptions>();
    let build = Python::read("cache.build", "cache", "\ndef build(\n");
    assert!(build.takes_others);
    build.check_all::<BuildOptions>();
}

/// Without a flag a struct has the library's defaults.
fn check_defaults<T: Args + Default + PartialEq + Debug>() {
    let command = T::augment_args(Command::new("options"));
    let parsed = T::from_arg_matches(&command.get_matches_from(["options"]));
    assert_eq!(parsed.unwrap(), T::default());
}

#[test]
fn defaults_are_those_of_the_library() {
    check_defaults::<SceneOptions>();
    check_defaults::<BuildOptions>();
    let pixels = SceneOptions::default().max_pixels;
    let written = |options: Vec<Arg>, name: &str| {
        let option = options.iter().find(|option| option.get_id() == name);
        option.and_then(default_of)
    };
    for (options, name, default) in [
        (
            definitions::<RaysOptions>(),
            "rays",
            RaysBuilder::DEFAULT_RAYS,
        ),
        (
            definitions::<RaysOptions>(),
            "joining",
            RaysBuilder::DEFAULT_JOINING.into(),
        ),
        (
            definitions::<RaysOptions>(),
            "row_limit",
            RaysBuilder::DEFAULT_ROW_LIMIT.as_secs(),
        ),
        (
            definitions::<ViewsOptions>(),
            "row_limit",
            ViewsBuilder::DEFAULT_ROW_LIMIT.as_secs(),
        ),
        (definitions::<RaysOptions>(), "max_pixels", pixels),
        (definitions::<LoaderOptions>(), "max_pixels", pixels),
    ] {
        assert_eq!(written(options, name), Some(default.to_string()), "{name}");
    }
    // Two defaults of Python's are others, and the definitions say so: a trainer takes larger
    // batches, and holds one more than a command does.
    let help = |name: &str| {
        let options = definitions::<LoaderOptions>();
        let option = options.iter().find(|option| option.get_id() == name);
        option.unwrap().get_help().unwrap().to_string()
    };
    for (name, default, module, line) in [
        (
            "batch_size",
            LoaderSetup::BATCH,
            "python/rust/options.rs",
            "const BATCH: u32 = ",
        ),
        (
            "depth",
            LoaderBuilder::DEFAULT_DEPTH,
            "python/src/featherload/_options.py",
            "\nDEPTH = ",
        ),
    ] {
        let text = help(name);
        assert!(text.contains(&format!("(default: {default}")), "{text}");
        let python = fs::read_to_string(file(module)).unwrap();
        let (_, value) = python.split_once(line).unwrap();
        let value: String = value.chars().take_while(char::is_ascii_digit).collect();
        assert!(text.contains(&format!("; {value} in Python)")), "{text}");
    }
}
