"""What the page of image-text trainers shows trains small models, with the right values."""

from __future__ import annotations

import json
import re
import tarfile
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

import featherload
from featherload.cache import Writer

PAGE = Path(__file__).parents[2] / "docs/python/image-text-trainers.md"
COUNT = 12
SIZES = ["original_size", "crop", "target_size"]

Make = Callable[..., featherload.Loader]


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in ("torch", "transformers", "accelerate"):
        need(module)
    import torch

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    # Threads of torch that wait for each other take seconds on a busy machine.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """The functions of the page."""
    need("torch")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def size(number: int) -> tuple[int, int]:
    """Height and width of an image."""
    return [(80, 80), (72, 128), (128, 72)][number % 3][0] + 4 * (number // 3), (80, 128, 72)[
        number % 3
    ]


def caption(number: int) -> str:
    return f"image {number} on " + "grass " * (number % 3 + 1) + "."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of three aspect ratios, with captions beside them."""
    from PIL import Image

    made = tmp_path_factory.mktemp("pairs")
    for number in range(COUNT):
        height, width = size(number)
        rows, columns = np.mgrid[:height, :width]
        # Each pixel has its row, its column and the number of the image.
        pixels = np.stack([40 + rows, 40 + columns, np.full_like(rows, 40 + 10 * number)], axis=-1)
        Image.fromarray(pixels.astype(np.uint8)).save(made / f"{number:02}.png")
        (made / f"{number:02}.txt").write_text(caption(number) + "\n")
    return made


@pytest.fixture
def made_of() -> Iterator[Callable[[featherload.Loader], featherload.Loader]]:
    """Ends a loader with its test."""
    loaders: list[featherload.Loader] = []

    def keep(one: featherload.Loader) -> featherload.Loader:
        loaders.append(one)
        return one

    yield keep
    for one in loaders:
        one.close()


def arguments(folder: Path) -> Namespace:
    """What the functions of the page read from the arguments of a script."""
    return Namespace(
        train_data_dir=str(folder),
        resolution=64,
        train_batch_size=2,
        dataloader_num_workers=0,
        seed=3,
    )


def clip_tokenizer(folder: Path) -> Any:
    from transformers import CLIPTokenizer

    characters = [chr(code) for code in range(33, 127)]
    words = ["<|startoftext|>", "<|endoftext|>", *characters, *(f"{c}</w>" for c in characters)]
    (folder / "vocab.json").write_text(json.dumps({word: at for at, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return CLIPTokenizer(
        str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=24
    )


def clip_text() -> Any:
    from transformers import CLIPTextConfig, CLIPTextModel

    config = CLIPTextConfig(
        vocab_size=190,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=24,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    return CLIPTextModel(config).eval()


def autoencoder() -> Any:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        block_out_channels=[4] * 4,
        norm_num_groups=2,
    ).eval()


def unet(**more: Any) -> Any:
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=4,
        norm_num_groups=4,
        **more,
    )


def tokens_of(tokenizer: Any) -> Callable[[list[str]], Any]:
    def tokens(captions: list[str]) -> Any:
        length = tokenizer.model_max_length
        return tokenizer(
            captions, max_length=length, padding="max_length", truncation=True, return_tensors="pt"
        ).input_ids

    return tokens


def denoise(model: Any, optimizer: Any, latents: Any, texts: Any, **conditions: Any) -> None:
    """A step of training, as the scripts of diffusers make it."""
    import torch
    from diffusers import DDPMScheduler

    scheduler = DDPMScheduler()
    noise = torch.randn_like(latents)
    steps = torch.randint(0, 1000, (len(latents),))
    noisy = scheduler.add_noise(latents, noise, steps)
    found = model(noisy, steps, texts, added_cond_kwargs=conditions).sample
    loss: Any = torch.nn.functional.mse_loss(found, noise)
    assert torch.isfinite(loss)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def weights(model: Any) -> list[Any]:
    return [weight.detach().clone() for weight in model.parameters()]


def changed(model: Any, before: list[Any]) -> int:
    return sum(not (a == b).all() for a, b in zip(weights(model), before, strict=True))


def test_text_to_image_has_the_tokens_of_each_image(
    shown: dict[str, Any], folder: Path, tmp_path: Path, made_of: Any
) -> None:
    need("diffusers")
    import torch

    torch.manual_seed(0)
    tokens = tokens_of(clip_tokenizer(tmp_path))
    rule = featherload.Captions(".txt", drop=0.5, map=tokens)
    loader = made_of(shown["image_text_loader"](arguments(folder), captions=rule))
    vae, texts, model = autoencoder(), clip_text(), unet()
    before, optimizer = weights(model), torch.optim.SGD(model.parameters(), 0.01)
    empty = tokens([""])[0]
    kept, seen, shapes = 0, [], set()
    for batch in loader:
        shapes.add(tuple(batch.images.shape[2:]))
        assert batch.images.abs().max() <= 1
        for number, image, row in zip(
            batch.ids.tolist(), batch.images, batch.captions, strict=True
        ):
            blue = image[2] * 127.5 + 127.5
            assert (blue - (40 + 10 * number)).abs().max() < 0.01
            is_kept = torch.equal(row, tokens([caption(number)])[0])
            assert is_kept or torch.equal(row, empty)
            kept += is_kept
            seen.append(number)
        with torch.no_grad():
            latents = vae.encode(batch.images).latent_dist.sample() * vae.config.scaling_factor
            states = texts(batch.captions)[0]
        denoise(model, optimizer, latents, states)
    assert sorted(seen) == list(range(COUNT)) and len(shapes) > 2
    assert 0 < kept < COUNT
    assert changed(model, before) > 20


def test_sdxl_reads_the_latents_and_the_sizes_of_their_crop(
    shown: dict[str, Any], folder: Path, tmp_path: Path, made_of: Any
) -> None:
    need("diffusers")
    import torch

    torch.manual_seed(0)
    make, args = shown["image_text_loader"], arguments(folder)
    vae, texts, tokens = autoencoder(), clip_text(), tokens_of(clip_tokenizer(tmp_path))
    known: dict[int, tuple[Any, ...]] = {}
    first = made_of(make(args, captions=".txt"))
    with Writer(tmp_path / "values", first) as writer, torch.no_grad():
        for batch in first:
            latents = vae.encode(batch.images).latent_dist.sample()
            found = texts(tokens(batch.captions))
            writer.write(batch, latents=latents, states=found[0], pooled=found[1])
            places = np.concatenate([getattr(batch, name) for name in SIZES], axis=1).tolist()
            for row, number in enumerate(batch.ids.tolist()):
                known[number] = latents[row], batch.images[row].clone(), places[row]

    # The stored latents are those of the crop: encoded once more, each image alone.
    columns = ["latents", "states", "pooled", *SIZES]
    later = made_of(make(args, stored=tmp_path / "values", images=False, columns=columns))
    model = unet(
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=16 + 6 * 8,
    )
    before, optimizer = weights(model), torch.optim.SGD(model.parameters(), 0.01)
    seen = []
    for batch in later:
        moved = batch.to(torch.device("cpu"))
        latents = torch.stack([*moved["latents"]])
        time_ids = torch.cat([moved[name] for name in SIZES], dim=1)
        for row, number in enumerate(batch.ids.tolist()):
            latent, image, place = known[number]
            assert torch.equal(latents[row], latent)
            with torch.no_grad():
                spread = vae.encode(image[None]).latent_dist
            assert ((latents[row] - spread.mean[0]).abs() <= 6 * spread.std[0] + 1e-4).all()
            assert time_ids[row].tolist() == place
            height, width, top, left, rows, cols = place
            assert (height, width) == size(number)
            assert (
                (rows, cols) == tuple(image.shape[1:]) == (8 * latent.shape[1], 8 * latent.shape[2])
            )
            # The first pixel has the place of the crop as its colours.
            scale = max(rows / height, cols / width)
            there = (image[:2, 0, 0] * 127.5 + 127.5 - 40) * scale
            assert (there - torch.tensor([top, left])).abs().max() < 2
            states = texts(tokens([caption(number)]))
            assert torch.allclose(moved["states"][row], states[0][0], atol=1e-5)
            assert torch.allclose(moved["pooled"][row], states[1][0], atol=1e-5)
            seen.append(number)
        added = {"time_ids": time_ids.float(), "text_embeds": moved["pooled"]}
        denoise(model, optimizer, latents, moved["states"], **added)
    assert sorted(seen) == list(range(COUNT))
    assert changed(model, before) > 20


def pairs_loader(shown: dict[str, Any], folder: Path, tokens: Any, **place: Any) -> Any:
    """Images 0 to 8 are of the subject, the others of its class."""
    paths = [str(folder / f"{number:02}.png") for number in range(COUNT)]
    prompts = ["a zbx dog"] * 9 + ["a dog"] * 3
    order = shown["PriorPairs"]((9, 3), 2, 5, *place.values())
    return featherload.Loader(
        {"path": paths, "prompt": prompts},
        shown["recipe"](arguments(folder)),
        4,
        num_workers=1,
        sampler=order,
        captions=featherload.Captions("prompt", map=tokens),
        framework="torch",
        **place,
    )


def test_dreambooth_has_the_subject_before_its_class(
    shown: dict[str, Any], folder: Path, tmp_path: Path, made_of: Any
) -> None:
    import torch

    tokens = tokens_of(clip_tokenizer(tmp_path))
    subject, others = tokens(["a zbx dog", "a dog"])
    loader = made_of(pairs_loader(shown, folder, tokens))
    orders: list[list[list[int]]] = []
    for _ in range(2):
        orders.append(batches := [])
        for batch in loader:
            batches.append(batch.ids.tolist())
            half = len(batch.ids) // 2
            assert batch.images.shape == (2 * half, 3, 64, 64)
            assert all(number < 9 for number in batch.ids[:half].tolist())
            assert all(number >= 9 for number in batch.ids[half:].tolist())
            assert torch.equal(batch.captions, torch.stack([subject] * half + [others] * half))
        assert [len(batch) for batch in batches] == [4, 4, 4, 4, 2]
        firsts = [number for batch in batches for number in batch[: len(batch) // 2]]
        assert sorted(firsts) == list(range(9))
        lasts = [number for batch in batches for number in batch[len(batch) // 2 :]]
        assert sorted(lasts) == sorted([9, 10, 11] * 3)
    assert orders[0] != orders[1]


def test_dreambooth_divides_pairs_over_ranks(
    shown: dict[str, Any], folder: Path, tmp_path: Path, made_of: Any
) -> None:
    tokens = tokens_of(clip_tokenizer(tmp_path))
    firsts: list[int] = []
    lengths = []
    for rank in range(2):
        loader = made_of(pairs_loader(shown, folder, tokens, rank=rank, world_size=2))
        batches = [batch.ids.tolist() for batch in loader]
        lengths.append([len(batch) for batch in batches])
        firsts += [number for batch in batches for number in batch[: len(batch) // 2]]
    assert lengths == [[4, 4, 2]] * 2
    # Nine pairs on two ranks: one comes twice.
    assert len(firsts) == 10 and set(firsts) == set(range(9))


@pytest.mark.parametrize("kind", ["buckets", "pairs"])
def test_accelerate_resumes_at_the_next_batch(
    shown: dict[str, Any], folder: Path, tmp_path: Path, made_of: Any, kind: str
) -> None:
    from accelerate import Accelerator

    def make() -> Any:
        if kind == "pairs":
            return made_of(pairs_loader(shown, folder, lambda texts: texts))
        return made_of(shown["image_text_loader"](arguments(folder), captions=".txt"))

    accelerator = Accelerator(cpu=True)
    loader = make()
    assert accelerator.prepare(loader) is loader
    accelerator.register_for_checkpointing(loader)
    whole = [batch.ids.tolist() for batch in loader]
    assert len(whole) == len(loader)
    second = iter(loader)
    for _ in range(2):
        next(second)
    accelerator.save_state(str(tmp_path / "state"))
    rest = [batch.ids.tolist() for batch in second]
    third = [batch.ids.tolist() for batch in loader]
    again = make()
    accelerator._custom_objects.clear()
    accelerator.register_for_checkpointing(again)
    accelerator.load_state(str(tmp_path / "state"))
    assert [batch.ids.tolist() for batch in again] == rest
    assert [batch.ids.tolist() for batch in again] == third
    accelerator._custom_objects.clear()


def test_open_clip_trains_an_epoch(
    shown: dict[str, Any], folder: Path, tmp_path: Path, made_of: Any
) -> None:
    need("open_clip")
    need("open_clip_train")
    import open_clip
    import torch
    from open_clip.transform import image_transform
    from open_clip_train.data import DataInfo
    from open_clip_train.train import train_one_epoch
    from PIL import Image

    torch.manual_seed(0)
    for shard in range(2):
        with tarfile.open(tmp_path / f"{shard}.tar", "w") as tar:
            for number in range(6 * shard, 6 * shard + 6):
                for name in (f"{number:02}.png", f"{number:02}.txt"):
                    tar.add(folder / name, name)
    args = Namespace(
        **{"batch_size": 4, "workers": 1, "seed": 0, "accum_freq": 1, "device": "cpu"},
        **{"precision": "fp32", "distill": False, "skip_scheduler": True, "horovod": False},
        **{"grad_clip_norm": None, "rank": 0, "local_rank": 0, "world_size": 1, "wandb": False},
        **{"log_every_n_steps": 1, "log_local": False},
    )
    transform = image_transform(64, is_train=False)
    tokenizer = open_clip.SimpleTokenizer(context_length=8)
    shards = str(tmp_path / "*.tar")
    pairs = shown["TextPairs"](shards, transform, tokenizer, args, drop_last=True)
    made_of(pairs.loader)
    assert (pairs.num_batches, pairs.num_samples) == (3, COUNT)
    model = open_clip.CLIP(
        embed_dim=8,
        vision_cfg={"image_size": 64, "patch_size": 32, "layers": 1, "width": 16, "head_width": 8},
        text_cfg={"context_length": 8, "width": 8, "heads": 1, "layers": 1},
        output_dict=True,
    )
    seen: list[list[int]] = []
    forward = model.forward
    of_caption = {tuple(tokenizer([caption(n)])[0].tolist()): n for n in range(COUNT)}

    def compared(images: Any, texts: Any) -> Any:
        # Each text is that of its image.
        numbers = [of_caption[tuple(row)] for row in texts.tolist()]
        seen.append(numbers)
        for image, number in zip(images, numbers, strict=True):
            wanted = transform(Image.open(folder / f"{number:02}.png"))
            assert (image - wanted).abs().max() < 0.04
        return forward(images, texts)

    model.forward = compared
    before, optimizer = weights(model), torch.optim.SGD(model.parameters(), 0.1)
    data = {"train": DataInfo(pairs, shared_epoch=pairs)}
    for epoch in (0, 4):
        train_one_epoch(model, data, open_clip.ClipLoss(), epoch, optimizer, None, None, None, args)
        assert pairs.loader.epoch == epoch + 1
    for batches in (seen[:3], seen[3:]):
        assert sorted(number for batch in batches for number in batch) == list(range(COUNT))
    assert seen[:3] != seen[3:]
    assert changed(model, before) > 10


def test_sd_scripts_has_the_keys_of_its_loop(
    shown: dict[str, Any], folder: Path, tmp_path: Path, made_of: Any
) -> None:
    import torch

    from featherload import kohya

    others = tmp_path / "others"
    others.mkdir()
    (others / "0.png").write_bytes((folder / "00.png").read_bytes())
    config = tmp_path / "dataset.toml"
    config.write_text(
        f"""[[datasets]]
resolution = 64
batch_size = 4
enable_bucket = true
min_bucket_reso = 64
bucket_reso_steps = 16
[[datasets.subsets]]
image_dir = '{folder}'
caption_extension = '.txt'
[[datasets.subsets]]
image_dir = '{others}'
class_tokens = 'a thing'
is_reg = true
"""
    )
    [data] = kohya.read(config, prior_loss_weight=0.25)
    loader = made_of(featherload.Loader(**data.keywords(), framework="torch", num_workers=1))
    tokens = tokens_of(clip_tokenizer(tmp_path))
    total, seen = 0.0, []
    for batch in loader:
        made = shown["sd_scripts_batch"](batch, lambda texts: [tokens(texts)], 0.5)
        rows = len(batch.ids)
        assert made["images"].dtype == torch.float32 and len(made["images"]) == rows
        assert made["latents"] is made["alpha_masks"] is made["text_encoder_outputs_list"] is None
        assert torch.equal(made["input_ids_list"][0], tokens(made["captions"]))
        assert made["network_multipliers"].tolist() == [0.5] * rows
        assert made["custom_attributes"] == [{}] * rows and made["flippeds"] == [False] * rows
        for name in ("original_sizes_hw", "crop_top_lefts", "target_sizes_hw"):
            assert made[name].dtype == torch.int64 and made[name].shape == (rows, 2)
        assert (made["target_sizes_hw"] == torch.tensor(made["images"].shape[2:])).all()
        for text, of_row, original in zip(
            made["captions"], made["loss_weights"], made["original_sizes_hw"].tolist(), strict=True
        ):
            seen.append(text)
            if text == "a thing":
                assert of_row == 0.25
                continue
            assert of_row == 1 and tuple(original) == size(int(text.split()[1]))
        total += float(made["loss_weights"].sum())
    wanted = [caption(number) for number in range(COUNT)]
    assert sorted(set(seen)) == sorted({*wanted, "a thing"})
    assert total == COUNT + 0.25 * seen.count("a thing")


CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for c in m.content %}"
    "{% if c.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ c.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def qwen_processor() -> Any:
    import transformers
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    marks = ["im_start", "im_end", "vision_start", "vision_end", "image_pad", "video_pad"]
    special = [f"<|{name}|>" for name in marks]
    words = ["user", "assistant", "Describe", "the", "image", "on", "grass", "."]
    names = ["<pad>", "<unk>", *special, *words, *map(str, range(COUNT))]
    of_words = Tokenizer(WordLevel({name: at for at, name in enumerate(names)}, "<unk>"))
    of_words.pre_tokenizer = Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=of_words,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<|im_end|>",
        additional_special_tokens=special,
    )
    images = transformers.Qwen2VLImageProcessor(
        size={"shortest_edge": 784, "longest_edge": 8000}, patch_size=7
    )
    videos = transformers.Qwen2VLVideoProcessor()
    return transformers.Qwen2VLProcessor(images, tokenizer, videos, chat_template=CHAT)


def qwen(processor: Any) -> Any:
    import transformers

    tokenizer = processor.tokenizer
    number = tokenizer.convert_tokens_to_ids
    config = transformers.Qwen2VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2]},
        },
        vision_config={
            **{"depth": 1, "embed_dim": 16, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2},
            "patch_size": 7,
        },
        image_token_id=number("<|image_pad|>"),
        video_token_id=number("<|video_pad|>"),
        vision_start_token_id=number("<|vision_start|>"),
        vision_end_token_id=number("<|vision_end|>"),
    )
    return transformers.Qwen2VLForConditionalGeneration(config)


def test_a_chat_has_the_inputs_of_the_processor(
    shown: dict[str, Any], folder: Path, made_of: Any
) -> None:
    import torch
    from PIL import Image

    torch.manual_seed(0)
    processor = qwen_processor()
    question = "Describe the image ."
    asked = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": question}]}]
    loader = made_of(
        featherload.Loader(
            folder,
            processor.image_processor,
            batch_size=5,
            captions=".txt",
            framework="torch",
            num_workers=1,
        )
    )
    model = qwen(processor)
    before, optimizer = weights(model), torch.optim.SGD(model.parameters(), 0.1)
    lengths = set()
    for batch in loader:
        made = shown["vision_language_inputs"](batch, processor, question)
        texts = [
            processor.apply_chat_template(
                [*asked, {"role": "assistant", "content": [{"type": "text", "text": caption(n)}]}]
            )
            for n in batch.ids.tolist()
        ]
        images = [Image.open(path) for path in batch.paths()]
        wanted = processor(images=images, text=texts, padding=True, return_tensors="pt")
        assert made.keys() - wanted.keys() == {"labels"} and wanted.keys() <= made.keys()
        for name in wanted.keys() - {"pixel_values"}:
            assert torch.equal(made[name], wanted[name]) and made[name].dtype == wanted[name].dtype
        # One level.
        worst = (made["pixel_values"] - wanted["pixel_values"]).abs().max()
        assert made["pixel_values"].shape == wanted["pixel_values"].shape and worst < 0.016
        # The loss is that of the caption and of the end of its turn.
        for row, n in enumerate(batch.ids.tolist()):
            left = made["input_ids"][row][made["labels"][row] != -100]
            assert processor.tokenizer.decode(left).split() == [*caption(n).split(), "<|im_end|>"]
            places = made["labels"][row] != -100
            assert torch.equal(made["labels"][row][places], left)
            lengths.add(int(batch.patches.tokens[row]))
        loss = model(**made).loss
        assert torch.isfinite(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert len(lengths) > 2
    assert changed(model, before) > 20
