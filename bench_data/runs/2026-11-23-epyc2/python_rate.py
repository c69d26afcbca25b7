"""Rate through Python beside the command line's, in turns; what next() costs; the start in a large trainer."""
import json, os, statistics, subprocess, sys, time, threading
import featherload
from featherload._helper import helper
data = sys.argv[1]
def cli(batch, dtype, recipe):
    r = subprocess.run([helper(),"bench",data,"--recipe",recipe,"--batch",str(batch),"--dtype",dtype,"--workers","2","--depth","4","--epochs","12","--json"],capture_output=True,text=True,check=True)
    return json.loads(r.stdout)["images_per_s"]
def ours(batch, dtype, recipe, framework):
    l = featherload.Loader(data, recipe, batch, 2, dtype=dtype, framework=framework, epochs=12)
    n=0; first=None; took=0.0
    for _ in range(12):
        it=iter(l)
        while True:
            try: b=next(it)
            except StopIteration: break
            t=time.perf_counter()
            if first is None: first=t; continue
            n+=len(b._of_loader)
    end=time.perf_counter(); l.close()
    return n/(end-first)
for batch in (64,256):
    for dtype in ("f16","f32"):
        pairs=[]
        for i in range(7):
            a,b=(cli(batch,dtype,"train224"),ours(batch,dtype,"train224","torch")) if i%2==0 else reversed((ours(batch,dtype,"train224","torch"),cli(batch,dtype,"train224")))
            pairs.append(b/a)
        print(batch,dtype,"python/cli",round(statistics.median(pairs),3),[round(p,3) for p in pairs],flush=True)
# what next() costs in Python: batches are ready
for fw in ("numpy","torch","jax"):
    l=featherload.Loader(data,{"ops":[{"resize":{"size":[8,8]}}]},64,2,framework=fw,depth=16,dtype="uint8")
    costs=[]
    for e in range(6):
        it=iter(l); 
        while True:
            time.sleep(0.06)
            t=time.perf_counter()
            try: b=next(it)
            except StopIteration: break
            costs.append((time.perf_counter()-t)*1e6)
    print(fw,"next us: median",round(statistics.median(costs),1),"p90",round(sorted(costs)[int(len(costs)*.9)],1),flush=True)
