F=./featherload
show() { python3 -c '
import json,sys
for l in sys.stdin:
    try: r=json.loads(l)
    except ValueError: print(l.strip()[:800]); continue
    if "slot_gb_per_s" in r:
        d=r["device"]; print({k:(round(r[k],3) if isinstance(r[k],float) else r[k]) for k in ("images_per_s","slot_gb_per_s","copy_ms","kernel_ms","slot_bytes","batches","seconds")}, "copied MiB a batch", round(d["copied_bytes"]/2**20/r["batches"],1), "in place", round(d["in_place_bytes"]/2**20/r["batches"],1))
    elif "ceiling_ratio" in r:
        print({k:(round(r[k],3) if isinstance(r[k],float) else r[k]) for k in r if k!="pairs"})
    else:
        d=r["loader"]["device"]; m=r["device"]
        print({k:(round(r[k],2) if isinstance(r[k],float) else r[k]) for k in ("images_per_s","first_batch_ms","gpu_mib","bound_by","seconds","batches","failed") if k in r}, {k:m[k] for k in ("planned_bytes","at_context_bytes","at_start_bytes","peak_bytes","steady_min_bytes","steady_max_bytes","pinned_bytes")}, "copy %.2f kernel %.2f ms a batch, %.1f%% of the time; waited %.1f%%, consumer %.1f%%" % (1e3*d["copy_s"]/d["batches"],1e3*d["kernel_s"]/d["batches"],100*(d["copy_s"]+d["kernel_s"])/r["seconds"],100*r["loader"]["consumer_wait_s"]/r["seconds"],100*r["loader"]["consumer_s"]/r["seconds"]), "resized", r["loader"]["resized_by_workers"])
'; }
