$RUN /usr/bin/node -e '
console.log([1, 2, 3].map(x => x * 2), process.arch, process.platform, process.execPath);
let s = 0; for (let i = 0; i < 100000; i++) s += i; console.log(s);
require("fs").readFile("/etc/debian_version", (e, d) => { console.log(String(d));
setTimeout(() => console.log(require("child_process").execSync("echo child").toString()), 10); });'
