use std::fs;

use super::super::RecipeFormat;
use crate::error::Error;
use crate::recipe::program::SampleProgram;
use crate::recipe::{RandomInvert, Recipe};

const YAML: RecipeFormat = RecipeFormat::Yaml;
const TOML: RecipeFormat = RecipeFormat::Toml;
const JSON: RecipeFormat = RecipeFormat::Json;

/// The language, the text, and the beginning of the message with its line.
const TABLE: &[(RecipeFormat, &str, &str)] = &[
    // An unknown operation.
    (
        YAML,
        "featherload: 1\nops:\n  - decode\n  - random_resize_crop: {size: 224}\n",
        "4: op 'random_resize_crop' is unknown: did you mean 'random_resized_crop'?",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - RandomHorizontalFlip\n",
        "3: op 'RandomHorizontalFlip' is unknown: did you mean 'random_horizontal_flip'?",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - solarize\n",
        "3: op 'solarize' is unknown: did you mean 'random_solarize'?",
    ),
    (
        TOML,
        "featherload = 1\n[[ops]]\ndecode = {}\n[[ops]]\n[ops.random_resize_crop]\nsize = 224\n",
        "5: op 'random_resize_crop' is unknown: did you mean 'random_resized_crop'?",
    ),
    (
        TOML,
        "featherload = 1\nops = [\n  'decode',\n  'centre_crop',\n]\n",
        "4: op 'centre_crop' is unknown: did you mean 'center_crop'?",
    ),
    (
        JSON,
        "{\n  \"featherload\": 1,\n  \"ops\": [\n    {\"rezise\": {\"size\": 3}}\n  ]\n}",
        "4: op 'rezise' is unknown: did you mean 'resize'?",
    ),
    // An unknown parameter.
    (
        YAML,
        "featherload: 1\nops:\n  - normalize:\n      std: 1\n      mena: 0\n",
        "5: normalize has no parameter 'mena': did you mean 'mean'?",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - random_rotate90: {p: 0.5}\n",
        "3: random_rotate90 has no parameter 'p': choose from label",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - random_horizontal_flip: {probability: 0.5}\n",
        "3: random_horizontal_flip has no parameter 'probability': choose from p",
    ),
    (
        TOML,
        "featherload = 1\n[[ops]]\nnormalize.std = 1\nnormalize.mena = 0\n",
        "4: normalize has no parameter 'mena': did you mean 'mean'?",
    ),
    (
        JSON,
        "{\"featherload\": 1, \"ops\": [\n{\"normalize\": {\"std\": 1,\n\"mena\": 0}}]}",
        "3: normalize has no parameter 'mena': did you mean 'mean'?",
    ),
    // A value of another type.
    (
        YAML,
        "featherload: 1\nops:\n  - center_crop:\n      size: 224px\n",
        "4: size: expected a number of pixels or [height, width], found the text '224px': \
         write 224 without a unit",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - center_crop: {size: \"224\"}\n",
        "3: size: expected a number of pixels or [height, width], found the text '224': \
         remove the quotes",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - center_crop: {size: [224, true]}\n",
        "3: size: expected a number, found true",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - resize: {size: 8, antialias: yes}\n",
        "3: antialias: expected true or false, found the text 'yes': write true",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - resize: {size: 8, interpolation: bilinaer}\n",
        "3: interpolation: 'bilinaer' is unknown: did you mean 'bilinear'?",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - resize: {size: 8, interpolation: 1}\n",
        "3: interpolation: expected one of nearest, bilinear, bicubic, lanczos, area, found the \
         number 1",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - decode: {background: 000000}\n",
        "3: background: expected text, found the number 0: put it in quotes",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - decode: {background: whit}\n",
        "3: background: expected white, black or six hexadecimal digits such as ff8000, found \
         the text 'whit'",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - resize: 256\n",
        "3: resize: expected parameters (name: value), found the number 256",
    ),
    (
        TOML,
        "featherload = 1\n[[ops]]\n[ops.center_crop]\nsize = '224px'\n",
        "4: size: expected a number of pixels or [height, width], found the text '224px': \
         write 224 without a unit",
    ),
    (
        JSON,
        "{\"featherload\": 1, \"ops\": [\n{\"center_crop\":\n{\"size\": \"224px\"}}]}",
        "3: size: expected a number of pixels or [height, width], found the text '224px': \
         write 224 without a unit",
    ),
    (
        YAML,
        "featherload: 1\nreorder: sometimes\nops: []\n",
        "2: reorder: 'sometimes' is unknown: choose from off, exact, fast",
    ),
    (
        YAML,
        "featherload: 1\nname: 224\nops: []\n",
        "2: name: expected text, found the number 224: put it in quotes",
    ),
    // A missing parameter, at the operation.
    (
        YAML,
        "featherload: 1\nops:\n  - normalize:\n      mean: 0\n",
        "3: normalize: 'std' is missing, and it has no default: write it",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - decode\n  - random_crop\n",
        "4: random_crop: 'size' is missing, and it has no default: write it",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - decode\n  - random_crop:\n",
        "4: random_crop: 'size' is missing, and it has no default: write it",
    ),
    (
        TOML,
        "featherload = 1\n[[ops]]\n[ops.normalize]\nmean = 0\n",
        "3: normalize: 'std' is missing, and it has no default: write it",
    ),
    (
        JSON,
        "{\"featherload\": 1, \"ops\": [\n{\"normalize\":\n{\"mean\": 0}}]}",
        "2: normalize: 'std' is missing, and it has no default: write it",
    ),
    // Numbers that cannot be pixels.
    (
        YAML,
        "featherload: 1\nops:\n  - center_crop: {size: -224}\n",
        "3: size: expected a number of pixels or [height, width], found the number -224",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - center_crop: {size: .nan}\n",
        "3: size: expected a number of pixels or [height, width], found the number NaN",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - center_crop: {size: [224, 1.5]}\n",
        "3: size: expected a number of pixels or [height, width], found [224, 1.5]",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - resize:\n      max_size: -1\n",
        "4: max_size: expected a whole number from 0 to 4294967295, found the number -1",
    ),
    (
        TOML,
        "featherload = 1\n[[ops]]\ncenter_crop.size = -224\n",
        "3: size: expected a number of pixels or [height, width], found the number -224",
    ),
    (
        TOML,
        "featherload = 1\nops = [\n{resize = {max_size = 99999999999999999999}}]\n",
        "3: max_size: expected a whole number from 0 to 4294967295, found the number ",
    ),
    // Invalid items in the list of operations.
    (
        YAML,
        "featherload: 1\nops:\n  - normalize:\n    mean: 0\n",
        "4: ops: 'mean' is next to 'normalize': an item of the list holds one operation. Indent 'mean' deeper",
    ),
    (
        TOML,
        "featherload = 1\n[[ops]]\ncast.dtype = 'f16'\nlayout.layout = 'nchw'\n",
        "4: ops: 'layout' is next to 'cast': an item of the list holds one operation. Indent 'layout' deeper",
    ),
    (
        JSON,
        "{\"featherload\": 1, \"ops\": [{\"decode\": {},\n\"random_rotate90\": {}}]}",
        "2: ops: 'random_rotate90' is next to 'decode': an item of the list holds one operation. Indent ",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - decode\n  - 3\n",
        "4: ops: expected an operation's name (decode ... zero_channel), found the number 3",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - {}\n",
        "3: ops: the name of an operation is missing: write one, such as `- decode`",
    ),
    (
        YAML,
        "featherload: 1\nops: decode\n",
        "2: ops: expected a list, found the text 'decode'",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  decode:\n",
        "3: ops: expected a list, found parameters",
    ),
    (
        YAML,
        "featherload: 1\nops:\n",
        "2: ops: expected a list, found nothing",
    ),
    (
        TOML,
        "featherload = 1\nops = 3\n",
        "2: ops: expected a list, found the number 3",
    ),
    (
        JSON,
        "{\"featherload\": 1,\n\"ops\": null}",
        "2: ops: expected a list, found nothing",
    ),
    (YAML, "featherload: 1\n", "1: 'ops' is missing"),
    (TOML, "featherload = 1\n", "1: 'ops' is missing"),
    (JSON, "{\"featherload\": 1}", "1: 'ops' is missing"),
    // The version.
    (
        YAML,
        "ops: []\nfeatherload: 2\nspeed: warp\n",
        "2: featherload: expected the format's version 1, found the number 2",
    ),
    (
        TOML,
        "# new\nfeatherload = \"1\"\n",
        "2: featherload: expected the format's version 1, found the text '1': remove the quotes",
    ),
    (
        JSON,
        "{\"featherload\": 2}",
        "1: featherload: expected the format's version 1, found the number 2",
    ),
    (YAML, "ops: []\n", "1: 'featherload: 1' is missing"),
    (TOML, "ops = []\n", "1: 'featherload: 1' is missing"),
    (JSON, "{\"ops\": []}", "1: 'featherload: 1' is missing"),
    // The file as a whole.
    (
        YAML,
        "featherload: 1\nopps: []\n",
        "2: a recipe file has no parameter 'opps': did you mean 'ops'?",
    ),
    (
        TOML,
        "featherload = 1\nops = []\n[weather]\nsun = true\n",
        "3: a recipe file has no parameter 'weather': choose from featherload, name, reorder, ",
    ),
    (
        JSON,
        "{\"featherload\": 1,\n\"op\": []}",
        "2: a recipe file has no parameter 'op': did",
    ),
    (
        YAML,
        "featherload: 1\nops: []\nname: a\nops: []\n",
        "4: 'ops' is written twice, first in line 2: remove one",
    ),
    (
        YAML,
        "featherload: 1\nops:\n  - resize:\n      size: 1\n      size: 2\n",
        "5: 'size' is written twice, first in line 4: remove one",
    ),
    (
        TOML,
        "featherload = 1\nops = []\nops = []\n",
        "3: not TOML: duplicate key",
    ),
    (
        JSON,
        "{\"featherload\": 1,\n\"featherload\": 1}",
        "2: 'featherload' is written twice",
    ),
    (
        YAML,
        "- decode\n- layout\n",
        "1: expected a recipe ('featherload: 1' and a list 'ops')",
    ),
    (
        YAML,
        "# nothing\n",
        "1: expected a recipe ('featherload: 1' and a list 'ops'), found noth",
    ),
    (
        JSON,
        "3",
        "1: expected a recipe ('featherload: 1' and a list 'ops'), found the number 3",
    ),
    (
        YAML,
        "featherload: 1\nops: []\n---\nops: []\n",
        "3: a second document begins here",
    ),
    // Texts that are not of their language.
    (
        YAML,
        "featherload: 1\nops:\n\t- decode\n",
        "3: not YAML: tab",
    ),
    (
        YAML,
        "featherload: 1\nops: [decode,\n  layout\n",
        "2: not YAML: unclosed bracket",
    ),
    (YAML, "featherload: 1\nops: []]\n", "2: not YAML: "),
    (
        YAML,
        "featherload: 1\nname: \"a\nops: []\n",
        "3: not YAML: ",
    ),
    (YAML, "featherload: 1\nops: [*later]\n", "2: not YAML: "),
    (
        YAML,
        "a: &a [*a]\n",
        "1: the alias is used inside its own value: write the value out",
    ),
    (
        YAML,
        "a: 1\nb: !python/tuple [1]\n",
        "2: the tag '!python/tuple' does not fit here",
    ),
    (YAML, "a: 1\n? [1]\n: 2\n", "2: a name must be text"),
    (
        YAML,
        "a: 1\n<<: 3\n",
        "2: expected a map, or a list of maps, after '<<', found the num",
    ),
    (
        TOML,
        "featherload = 1\nops = [\n  'decode',\nname = 'a'\n",
        "4: not TOML: ",
    ),
    (TOML, "featherload = 1\nname = train\n", "2: not TOML: "),
    (TOML, "featherload = 1\n[[ops\n", "2: not TOML: "),
    (
        JSON,
        "{\"featherload\": 1,\n\"ops\": [],\n}",
        "3: not JSON: ",
    ),
    (
        JSON,
        "{\"featherload\": 1,\n\"ops\": [\"decode\"\n",
        "3: not JSON: ",
    ),
    (JSON, "featherload: 1\nops: []\n", "1: not JSON: "),
];

#[test]
fn every_mistake_is_one_line_with_its_place() {
    let mut wrong = Vec::new();
    for (format, text, begins) in TABLE {
        let error = Recipe::from_text(text, *format, "dir/mine").expect_err(text);
        let said = error.to_string();
        if !said.starts_with(&format!("dir/mine:{begins}")) {
            wrong.push(format!("{text}\nsays {said}\nnot  dir/mine:{begins}\n"));
        }
        assert!(!said.contains('\n'), "{said}");
        assert!(error.is_usage());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lines_are_the_same_with_carriage_returns_and_a_byte_order_mark() {
    let mut wrong = Vec::new();
    for (format, text, begins) in TABLE {
        let text = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let error = Recipe::from_text(&text, *format, "mine").expect_err(&text);
        let said = error.to_string();
        let (line, _) = begins.split_once(':').unwrap();
        if !said.starts_with(&format!("mine:{line}: ")) {
            wrong.push(format!("{text:?}\nsays {said}, not line {line}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mistakes_in_what_is_done_to_batches_have_their_lines() {
    let head = "featherload: 1\nops:\n  - random_resized_crop: {size: 8}\n";
    for (mixing, begins) in [
        (
            "mixing:\n  num_clases: 9\n  ops: []\n",
            "5: mixing has no parameter 'num_clases': did you mean 'num_classes'?",
        ),
        (
            "mixing:\n  ops: []\n",
            "4: mixing: 'num_classes' is missing",
        ),
        (
            "mixing:\n  num_classes: 9\n  ops:\n    - mixupp: {alpha: 1}\n",
            "7: mixing op 'mixupp' is unknown: did you mean 'mixup'?",
        ),
        (
            "mixing:\n  num_classes: 9\n  ops:\n    - mixup: {alfa: 1}\n",
            "7: mixup has no parameter 'alfa': choose from alpha",
        ),
        (
            "mixing:\n  num_classes: 9\n  ops:\n    - mixup\n",
            "7: mixup: 'alpha' is missing",
        ),
        (
            "mixing:\n  num_classes: 0\n  ops: []\n",
            "5: mixing: num_classes is 0: use 1 to 16777216",
        ),
        (
            "mixing:\n  num_classes: 9\n  ops:\n    - label_smoothing: {epsilon: 0.1}\n    - mixup: {alpha: 0}\n",
            "8: mixup: alpha is 0: use more than 0",
        ),
        (
            "mixing:\n  num_classes: 9\n  ops:\n    - one_of:\n      - {p: 0.7, op: {mixup: {alpha: 1}}}\n      - {p: 0.7, op: {cutmix: {alpha: 1}}}\n",
            "7: one_of: the probabilities sum to 1.4",
        ),
        (
            "  - cast: {dtype: u8}\nmixing:\n  num_classes: 9\n  ops:\n    - mixup: {alpha: 1}\n",
            "6: mixing: mixup makes fractions, and batches are u8: cast to one of f16, \
             bf16, f32",
        ),
    ] {
        let text = format!("{head}{mixing}");
        let said = Recipe::from_text(&text, YAML, "mine")
            .unwrap_err()
            .to_string();
        assert!(said.starts_with(&format!("mine:{begins}")), "{said}");
    }
    let toml = "featherload = 1\nops = [{random_resized_crop = {size = 8}}]\n[mixing]\nnum_classes = 9\n\
                ops = [\n  {fmix = {alpha = 1, max_soft = 0.7}},\n]\n";
    let said = Recipe::from_text(toml, TOML, "mine")
        .unwrap_err()
        .to_string();
    assert!(said.starts_with("mine:6: fmix: max_soft is 0.7"), "{said}");
    let json = "{\"featherload\": 1, \"ops\": [{\"random_resized_crop\": {\"size\": 8}}],\n\"mixing\": \
                {\"num_classes\": 9,\n\"ops\": [\n{\"mixup_cutmix\": {\"mixup_alpha\": 0.8, \"cutmix_alpha\": 1}}]}}";
    let recipe = Recipe::from_text(json, JSON, "mine").unwrap();
    let mixing = recipe.mixing.unwrap().to_string();
    assert_eq!(
        mixing,
        "labels of 9 numbers; mixup_cutmix (mixup_alpha 0.8, cutmix_alpha 1, p 1, switch_p 0.5, \
         label_smoothing 0.1)"
    );
}

#[test]
fn a_message_stays_short_and_in_one_line_whatever_is_in_the_text() {
    for name in ["a\\nb\\u2028c\\u001b[31m", &"x".repeat(100_000)] {
        let text = format!("{{\"featherload\": 1, \"ops\": [\"{name}\"]}}");
        let said = Recipe::from_text(&text, JSON, "f").unwrap_err().to_string();
        assert!(said.starts_with("f:1: op '") && said.len() < 2000, "{said}");
        assert!(
            !said.contains(|c: char| c.is_control() || c == '\u{2028}'),
            "{said:?}"
        );
    }
}

#[test]
fn what_the_operations_mean_is_checked_too() {
    let text = "featherload: 1\nops:\n  - normalize: {mean: .nan, std: 1}\n";
    let said = Recipe::from_text(text, YAML, "f.yaml")
        .unwrap_err()
        .to_string();
    assert!(
        said.starts_with("f.yaml:") && said.contains("finite"),
        "{said}"
    );
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let says = |name: &str, bytes: Option<&[u8]>| {
        let path = folder.path().join(name);
        if let Some(bytes) = bytes {
            fs::write(&path, bytes).unwrap();
        }
        let error = Recipe::from_file(&path).unwrap_err();
        assert!(error.is_usage(), "{error}");
        let said = error.to_string();
        let rest = said.strip_prefix(path.to_str().unwrap());
        rest.unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    assert_eq!(
        says("a.txt", Some(b"")),
        ": a recipe file's name ends in .yaml (or .yml), .toml or .json"
    );
    assert!(says("absent.yaml", None).starts_with(": no such file: check the path"));
    fs::create_dir(folder.path().join("folder.yaml")).unwrap();
    assert_eq!(
        says("folder.yaml", None),
        ": is not a regular file: give a recipe file"
    );
    assert!(says("a.yaml", Some(b"")).starts_with(": is empty"));
    assert!(says("b.yml", Some(b" \r\n\n")).starts_with(": is empty"));
    assert_eq!(
        says("c.toml", Some(b"a = 1\nb = '\xff'\n")),
        ":2: is not UTF-8"
    );
    let mut long = vec![b'#'; 1 << 20];
    assert!(says("d.yaml", Some(&long)).starts_with(":1: expected a recipe"));
    long.push(b'#');
    assert_eq!(
        says("d.yaml", Some(&long)),
        ": is larger than 1 MiB: is it a recipe?"
    );
    // The text ends inside a letter, which is no mistake of the file.
    assert!(says("e.yaml", Some("é".repeat(1 << 20).as_bytes())).starts_with(": is larger than"));
}

#[test]
fn a_recipe_is_loaded_by_a_presets_name_or_a_path() {
    assert_eq!(Recipe::load("full").unwrap(), Recipe::full());
    let folder = tempfile::tempdir().unwrap();
    for name in ["mine.yaml", "mine.toml", "mine.json"] {
        let path = folder.path().join(name);
        let format = RecipeFormat::of(&path).unwrap();
        fs::write(&path, Recipe::eval224().to_text(format).unwrap()).unwrap();
        assert_eq!(
            Recipe::load(path.to_str().unwrap()).unwrap(),
            Recipe::eval224()
        );
    }
    // A recipe without a name gets the name of its file.
    let path = folder.path().join("plain.yaml");
    fs::write(&path, "featherload: 1\nops: [decode]\n").unwrap();
    assert_eq!(Recipe::from_file(&path).unwrap().name, "plain");
    let says = |text| Recipe::load(text).unwrap_err().to_string();
    assert_eq!(
        says("train225"),
        "recipe 'train225' is unknown: did you mean 'train224'? (presets: train224, eval224, full)"
    );
    assert_eq!(
        says("portraits"),
        "recipe 'portraits' is unknown: use train224, eval224, full, or a file that ends in \
         .yaml, .toml or .json"
    );
    assert!(says("absent.yaml").starts_with("absent.yaml: no such file"));
    assert!(says("src/lib").starts_with("src/lib: a recipe file's name ends in"));
    assert!(matches!(
        Recipe::load("train225"),
        Err(Error::Config { .. })
    ));
}

#[test]
fn a_recipe_has_at_most_1000_operations_wherever_they_stand() {
    const INVERT: &str = "random_invert";
    let ops = |n: usize, op: &str| vec![op.to_owned(); n].join(", ");
    let json = |n: usize, op: &str, more: &str| {
        let ops = ops(n, op);
        let text =
            format!("featherload: 1\nops: [decode, {ops}, {{resize: {{size: [8, 8]}}}}]\n{more}");
        Recipe::from_text(&text, YAML, "f")
    };
    assert_eq!(json(998, INVERT, "").unwrap().ops.len(), 1000);
    // A thousand comparisons of each would take too long.
    let e = json(40_000, INVERT, "").unwrap_err().to_string();
    for due in ["f:2: ", "has 40002 operations", "at most 1000"] {
        assert!(e.contains(due), "{e}");
    }
    for holder in ["random_apply", "random_order", "random_choice"] {
        let inner = format!("random_order: {{transforms: [{}]}}", ops(63, INVERT));
        let outer = format!("{{{holder}: {{transforms: [{{{inner}}}, {INVERT}]}}}}");
        assert!(json(10, &outer, "").is_ok());
        let e = json(16, &outer, "").unwrap_err().to_string();
        assert!(
            e.contains("has 1058 operations, those inside of others included"),
            "{e}"
        );
    }
    let choices = ops(1000, "{p: 0.001, op: {mixup: {alpha: 1}}}");
    let mixing = format!("mixing: {{num_classes: 2, ops: [{{one_of: [{choices}]}}]}}\n");
    let e = json(1, INVERT, &mixing).unwrap_err().to_string();
    assert!(
        e.starts_with("f:3: ") && e.contains("has 1004 operations"),
        "{e}"
    );
    // Never a valid text.
    let built = (0..1001).fold(Recipe::new("built"), |recipe, _| {
        recipe.then(RandomInvert::default())
    });
    let e = SampleProgram::compile(&built).unwrap_err();
    assert!(e.is_config(), "{e}");
    assert!(
        e.to_string()
            .starts_with("recipe 'built': the recipe has 100"),
        "{e}"
    );
}
