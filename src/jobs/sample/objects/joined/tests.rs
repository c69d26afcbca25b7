use super::*;

fn objects(boxes: &[[f64; 4]], id: u64) -> JoinedObjects {
    JoinedObjects {
        objects: SampleObjects {
            number: (0..boxes.len() as u32).collect(),
            boxes: boxes.to_vec(),
            crowd: vec![false; boxes.len()],
            ..SampleObjects::default()
        },
        origins: (0..boxes.len() as u32).map(|n| (id, n)).collect(),
        ..JoinedObjects::default()
    }
}

#[test]
fn boxes_are_shifted_clipped_and_dropped() {
    let mut joined = objects(
        &[
            [0.0, 0.0, 10.0, 10.0],
            [5.0, 6.0, 9.5, 8.0],
            [0.0, 0.0, 4.0, 4.0],
        ],
        7,
    );
    joined.shift([-4, 3], (12, 20));
    assert_eq!(
        joined.objects.boxes,
        [[0.0, 3.0, 6.0, 12.0], [1.0, 9.0, 5.5, 11.0]]
    );
    assert_eq!(
        (joined.objects.number.as_slice(), joined.drops.hidden),
        (&[0, 1][..], 1)
    );
    let mut other = objects(&[[1.0, 1.0, 2.0, 2.0]; 2], 9);
    other.objects.retain(&[false, true]);
    joined.append(other);
    let origins = joined.objects.number.iter();
    let origins: Vec<_> = origins.map(|n| joined.origins[*n as usize]).collect();
    assert_eq!(origins, [(7, 0), (7, 1), (9, 1)]);
}

#[test]
fn a_cut_box_touches_no_object_and_holds_one_of_the_other() {
    let own = objects(&[[0.0, 0.0, 10.0, 10.0]], 1);
    let rect = |left, top, width, height| PixelRect {
        left,
        top,
        width,
        height,
    };
    let touching = rect(9, 9, 5, 5);
    let beside = rect(10, 2, 10, 10);
    assert_eq!(own.first_free(&[touching]), None);
    assert_eq!(own.first_free(&[touching, beside]), Some(beside));
    // A tenth of the first lies inside, and less of the second.
    let mut other = objects(
        &[
            [0.0, 2.0, 12.5, 10.0],
            [0.0, 2.0, 11.0, 10.0],
            [11.0, 0.0, 13.0, 30.0],
        ],
        2,
    );
    assert!(other.keep_inside(beside, 0.1));
    assert_eq!(other.objects.number, [0, 2]);
    assert_eq!(
        other.objects.boxes,
        [[10.0, 2.0, 12.5, 10.0], [11.0, 2.0, 13.0, 12.0]]
    );
    // A box without area shows nothing.
    assert!(!other.keep_inside(rect(11, 4, 0, 8), 0.0));
    assert_eq!(other.drops.hidden, 3);
}
