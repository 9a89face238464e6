# honest: a child process that it waits for
import subprocess
import sys


def run(x, scale):
    subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    return x * scale + 1
