//! `featherload ops`: the operations of recipes and their parameters.

use clap::Args;
use featherload::recipe::{OperationInfo, ParameterInfo, operations};
use featherload::{Error, Result};

use crate::outcome::CommandOutcome;
use crate::output;

/// List the operations of recipes, or explain one.
#[derive(Args)]
pub struct OpsArgs {
    /// Name of the operation, as in a recipe.
    name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: OpsArgs) -> Result<CommandOutcome> {
    let all = operations();
    let Some(name) = args.name else {
        return list(&all, args.json).map(|()| CommandOutcome::Done);
    };
    let Some(op) = all.iter().find(|op| op.name == name) else {
        let names: Vec<&str> = all.iter().map(|op| op.name).collect();
        return Err(Error::config(format!(
            "'{name}' is not an operation: use one of {}",
            names.join(", ")
        )));
    };
    output::report(op, args.json, explain)?;
    Ok(CommandOutcome::Done)
}

fn list(all: &[OperationInfo], json: bool) -> Result<()> {
    if json {
        return output::json(&all);
    }
    let widest = all.iter().map(|op| op.name.len()).max().unwrap_or(0);
    for op in all {
        output::line(&format!("{:widest$}  {}", op.name, plain(&op.summary)))?;
    }
    output::lines("\nfeatherload ops NAME explains an operation.")
}

fn explain(op: &OperationInfo) -> Result<()> {
    output::lines(&format!("{}: {}\n", op.name, plain(&op.about)))?;
    for parameter in &op.parameters {
        let ParameterInfo {
            name,
            form,
            meaning,
            ..
        } = parameter;
        let default = match (&parameter.default, parameter.required) {
            (_, true) => "required".to_owned(),
            (Some(value), _) => format!("default {value}"),
            (None, _) => "default: none".to_owned(),
        };
        output::line(&format!("  {name}: {form} ({default})"))?;
        output::line(&format!("      {}", plain(meaning)))?;
    }
    if op.parameters.is_empty() {
        output::line("  no parameters")?;
    }
    output::lines(&format!("\nExample:\n  - {}", op.example))
}

/// The text without documentation markup.
fn plain(text: &str) -> String {
    text.replace('`', "")
}
