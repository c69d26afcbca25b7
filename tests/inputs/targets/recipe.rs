//! Recipe files: any text, in each language.
//!
//! The first byte chooses the language, the rest is the file. Nothing may panic,
//! take long or say more than one line; what is accepted must read back from its
//! own text, in every language, as the same recipe.

use featherload::recipe::{Recipe, RecipeFormat};

use super::Target;

const FORMATS: [RecipeFormat; 3] = [RecipeFormat::Yaml, RecipeFormat::Toml, RecipeFormat::Json];

pub fn target() -> Target {
    Box::new(run)
}

fn run(data: &[u8]) {
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let format = FORMATS[usize::from(choice) % FORMATS.len()];
    let recipe = match Recipe::from_text(text, format, "fuzz") {
        Ok(recipe) => recipe,
        Err(error) => {
            let message = error.to_string();
            assert!(error.is_usage() && message.starts_with("fuzz"), "{message}");
            assert!(!message.contains('\n') && message.len() < 4096, "{message}");
            return;
        }
    };
    for format in FORMATS {
        let text = recipe.to_text(format).expect("a text");
        let back = Recipe::from_text(&text, format, "fuzz").expect("a recipe");
        assert_eq!(back, recipe, "{text}");
        assert_eq!(back.hash(), recipe.hash(), "{text}");
    }
}
