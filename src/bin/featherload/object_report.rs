//! Prints what the objects of a data set are: `index --objects`.

use featherload::annotations::{AnnotationReport, CategoryCount};
use featherload::error::printable;
use featherload::{ObjectSurvey, Result};

use crate::output;
use crate::output::fields::print_beside;

/// Categories that are printed; `--json` lists more.
const CATEGORIES: usize = 40;
/// Columns of the longest bar.
const BAR: u64 = 24;

pub fn print_objects(survey: &ObjectSurvey) -> Result<()> {
    let found = &survey.annotations;
    output::line(&head(survey))?;
    if found.images_without_objects > 0 {
        let named = survey.first_without_objects.iter().take(3);
        let named: Vec<&str> = named.map(String::as_str).collect();
        let text = format!(
            "{} images without objects, such as {}",
            found.images_without_objects,
            named.join(", ")
        );
        print_beside("           ", &text)?;
    }
    for text in sources(found) {
        print_beside("           ", &text)?;
    }
    for line in histogram(survey) {
        output::line(&line)?;
    }
    for line in categories(&found.categories) {
        output::line(&line)?;
    }
    for wrong in &found.wrong {
        print_beside("wrong      ", &wrong.to_string())?;
    }
    Ok(())
}

fn head(survey: &ObjectSurvey) -> String {
    let found = &survey.annotations;
    let mean = found.objects as f64 / (found.images.max(1)) as f64;
    format!(
        "objects    {} of {} categories in {} images: {mean:.1} each, at most {}",
        found.objects,
        found.categories.len(),
        found.images,
        survey.most_in_image
    )
}

/// Images and annotations that do not fit each other, and crowds.
fn sources(found: &AnnotationReport) -> Vec<String> {
    [
        (found.images_without_entry, "images without an annotation"),
        (
            found.entries_without_image,
            "annotated images that are not in the data set",
        ),
        (found.crowds, "crowds"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect()
}

/// Sizes in the classes of COCO, with a bar for each.
fn histogram(survey: &ObjectSurvey) -> Vec<String> {
    let sizes = survey.sizes;
    let rows = [
        ("small, below 32 x 32", sizes.small),
        ("medium, below 96 x 96", sizes.medium),
        ("large", sizes.large),
        ("unknown, without headers", sizes.unknown),
    ];
    let all: u64 = rows.iter().map(|(_, count)| count).sum();
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (number, (name, count)) in rows.into_iter().enumerate() {
        if all == 0 || (number == 3 && count == 0) {
            continue;
        }
        let label = if number == 0 { "sizes" } else { "" };
        let percent = 100.0 * count as f64 / all as f64;
        // A bar of any length begins with a sign, so that few are told from none.
        let bar = "#".repeat((count * BAR).div_ceil(most.max(1)) as usize);
        let line = format!("{label:<11}{name:<24} {count:>9} {percent:>5.1}%  {bar}");
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// The categories with most objects.
fn categories(all: &[CategoryCount]) -> Vec<String> {
    let mut sorted: Vec<&CategoryCount> = all.iter().collect();
    sorted.sort_by_key(|of| std::cmp::Reverse(of.objects));
    let mut lines = vec!["categories label   objects  name".to_owned()];
    for of in sorted.iter().take(CATEGORIES) {
        let name = printable(&of.name);
        lines.push(format!(
            "           {:>5} {:>9}  {name}",
            of.label, of.objects
        ));
    }
    let left = sorted.len().saturating_sub(CATEGORIES);
    if left > 0 {
        lines.push(format!("           and {left} more: --json lists all"));
    }
    lines
}
