"""One of pyperformance's benchmarks, in this process: FOLDER, which has pyperformance and pyperf, NAME, LOOPS."""
import runpy
import sys

folder, name, loops = sys.argv[1:]
sys.path.insert(0, folder)
sys.argv = [name, "--worker", "--loops", loops, "--values", "1", "--warmups", "0"]
runpy.run_path(f"{folder}/pyperformance/data-files/benchmarks/bm_{name}/run_benchmark.py", run_name="__main__")
print("done:", name, loops)
