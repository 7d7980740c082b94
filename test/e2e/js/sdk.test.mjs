// What a user of the JavaScript SDK does. Run through test_js.py, or: E2E_JAVASCRIPT=… node --test
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'

const { Sandbox, CommandExitError, FileNotFoundError, NotFoundError, TimeoutError, AuthenticationError } =
  createRequire(`${process.env.E2E_JAVASCRIPT}/`)('e2b')
const metadata = { e2e: `js-${randomUUID()}` }
let sandbox

before(async () => {
  sandbox = await Sandbox.create({ metadata, timeoutMs: 600_000 })
})
after(async () => {
  await sandbox?.kill()
})

// item cp:60 cp:246 dp:99
test("create, run, kill", async () => {
  const made = await Sandbox.create({ metadata })
  try {
    const result = await made.commands.run('echo "Hello, World!"')
    assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['Hello, World!\n', '', 0])
    assert.equal(await made.isRunning(), true)
  } finally {
    assert.equal(await made.kill(), true)
  }
  assert.equal(await made.isRunning(), false)
  assert.equal(await Sandbox.kill(made.sandboxId), false)
})

// item cp:59
test("lifetime of 300 s by default", async () => {
  const made = await Sandbox.create({ metadata })
  try {
    const info = await made.getInfo()
    assert.ok(Math.abs(info.endAt - info.startedAt - 300_000) <= 2000)
    assert.equal(info.state, 'running')
  } finally {
    await made.kill()
  }
})

// item cp:101 cp:70
test("what does not exist", async () => {
  assert.equal(await Sandbox.kill('nonexistingsandbox'), false)
  await assert.rejects(Sandbox.getInfo('nonexistingsandbox'), NotFoundError)
  await assert.rejects(Sandbox.create('no-such-template', { metadata }), /no-such-template/)
})

// item cp:3
test("a bad key", async () => {
  await assert.rejects(Sandbox.create({ metadata, apiKey: 'e2b_' + '0'.repeat(40) }), AuthenticationError)
})

// item cp:77 cp:78 cp:86
test("list with a filter", async () => {
  const mark = { 'js list': `${randomUUID()} c&d=e/é%` }
  const two = [await Sandbox.create({ metadata: mark }), await Sandbox.create({ metadata: mark })]
  try {
    const pages = Sandbox.list({ query: { metadata: mark }, limit: 1 })
    assert.deepEqual((await pages.nextItems()).map((s) => s.sandboxId), [two[1].sandboxId])
    assert.equal(pages.hasNext, true)
    assert.deepEqual((await pages.nextItems()).map((s) => s.sandboxId), [two[0].sandboxId])
    assert.equal(pages.hasNext, false)
    const running = Sandbox.list({ query: { metadata: mark, state: ['running', 'paused'] } })
    assert.equal((await running.nextItems()).length, 2)
  } finally {
    for (const one of two) await one.kill()
  }
})

// item cp:62
test("connect", async () => {
  await sandbox.files.write('connect.txt', 'x')
  const other = await Sandbox.connect(sandbox.sandboxId)
  assert.equal(await other.files.read('connect.txt'), 'x')
})

// item cp:119
test("set the timeout", async () => {
  const made = await Sandbox.create({ metadata, timeoutMs: 60_000 })
  try {
    await made.setTimeout(500_000)
    await new Promise((done) => setTimeout(done, 500)) // until every replica knows
    const left = (await made.getInfo()).endAt - Date.now()
    assert.ok(left > 494_000 && left < 502_000)
  } finally {
    await made.kill()
  }
})

// item dp:100 dp:101
test("exit codes", async () => {
  await assert.rejects(sandbox.commands.run('echo out; echo err >&2; exit 3'), (e) => {
    assert.ok(e instanceof CommandExitError)
    assert.deepEqual([e.exitCode, e.stdout, e.stderr, e.error], [3, 'out\n', 'err\n', 'exit status 3'])
    return true
  })
  await assert.rejects(sandbox.commands.run('no-such-program-here'), (e) => e.exitCode === 127)
})

// item dp:106
test("timeout of a command", async () => {
  await assert.rejects(sandbox.commands.run('sleep 10', { timeoutMs: 1000 }), TimeoutError)
})

// item dp:108 dp:110 dp:103
test("background, list, kill", async () => {
  const handle = await sandbox.commands.run('sleep 100', { background: true })
  const mine = (await sandbox.commands.list()).find((p) => p.pid === handle.pid)
  assert.deepEqual([mine.cmd, mine.args], ['/bin/bash', ['-l', '-c', 'sleep 100']])
  assert.equal(await handle.kill(), true)
  assert.equal(await sandbox.commands.kill(handle.pid), false)
})

// item dp:117
test("stdin and its end", async () => {
  const handle = await sandbox.commands.run('cat', { background: true, stdin: true })
  await sandbox.commands.sendStdin(handle.pid, 'Hello')
  await sandbox.commands.closeStdin(handle.pid)
  assert.equal((await handle.wait()).stdout, 'Hello')
})

// item dp:112
test("connect to a command", async () => {
  const handle = await sandbox.commands.run('sleep 1; echo late', { background: true })
  await handle.disconnect()
  const again = await sandbox.commands.connect(handle.pid)
  assert.equal((await again.wait()).stdout, 'late\n')
})

// item dp:69 dp:120 dp:121
test("environment, user, folder", async () => {
  const made = await Sandbox.create({ metadata, envs: { FOO: 'bar' } })
  try {
    assert.equal((await made.commands.run('echo $FOO')).stdout, 'bar\n')
    assert.equal((await made.commands.run('echo $FOO', { envs: { FOO: 'baz' } })).stdout, 'baz\n')
    assert.equal((await made.commands.run('whoami', { user: 'root' })).stdout, 'root\n')
    assert.equal((await made.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
  } finally {
    await made.kill()
  }
})

// item dp:128 dp:129
test("terminal", async () => {
  let seen = ''
  const decoder = new TextDecoder()
  const until = async (text) => {
    for (let i = 0; i < 100 && !seen.includes(text); i++) await new Promise((done) => setTimeout(done, 100))
    assert.ok(seen.includes(text), seen)
  }
  const pty = await sandbox.pty.create({ cols: 80, rows: 24, envs: { FOO: 'the value' }, onData: (d) => (seen += decoder.decode(d)) })
  const type = (text) => sandbox.pty.sendInput(pty.pid, new TextEncoder().encode(text))
  await type('echo [$FOO] [$(tput cols)]\n')
  await until('[the value] [80]')
  await sandbox.pty.resize(pty.pid, { cols: 100, rows: 30 })
  await type('echo [$(tput cols)]\n')
  await until('[100]')
  await type('exit\n')
  assert.equal((await pty.wait()).exitCode, 0)
})

// item dp:71 dp:72 dp:78
test("files, all kinds of content", async () => {
  const info = await sandbox.files.write('test.txt', 'Hello äöü')
  assert.deepEqual([info.name, info.path], ['test.txt', '/home/user/test.txt'])
  assert.equal(await sandbox.files.read('test.txt'), 'Hello äöü')
  const data = randomBytes(1 << 20)
  await sandbox.files.write('/tmp/bin', new Blob([data]))
  assert.ok(Buffer.from(await sandbox.files.read('/tmp/bin', { format: 'bytes' })).equals(data))
  const many = await sandbox.files.write([1, 2, 3].map((i) => ({ path: `/home/user/many/${i}`, data: String(i) })))
  assert.deepEqual(many.map((f) => f.path), [1, 2, 3].map((i) => `/home/user/many/${i}`))
})

// item dp:73 dp:143 dp:144 dp:147 dp:148 dp:150 dp:151
test("file system calls", async () => {
  await assert.rejects(sandbox.files.read('/home/user/nothing'), FileNotFoundError)
  assert.equal(await sandbox.files.makeDir('js/a/b'), true)
  assert.equal(await sandbox.files.makeDir('js/a/b'), false)
  await sandbox.files.write('js/f', '12345')
  const info = await sandbox.files.getInfo('js/f')
  assert.deepEqual([info.type, info.size, info.mode, info.permissions, info.owner], ['file', 5, 0o644, '-rw-r--r--', 'user'])
  assert.deepEqual((await sandbox.files.list('/home/user/js')).map((e) => e.name), ['a', 'f'])
  await sandbox.files.rename('js/f', 'js/deep/g')
  assert.deepEqual([await sandbox.files.exists('js/f'), await sandbox.files.exists('js/deep/g')], [false, true])
  await sandbox.files.remove('js')
  assert.equal(await sandbox.files.exists('js'), false)
})

// item dp:158 dp:154
test("watch a folder", async () => {
  await sandbox.files.makeDir('watch')
  const seen = []
  const handle = await sandbox.files.watchDir('watch', (e) => seen.push([e.name, e.type]))
  await sandbox.files.write('watch/f', 'x')
  for (let i = 0; i < 50 && seen.length < 3; i++) await new Promise((done) => setTimeout(done, 100))
  await handle.stop()
  assert.deepEqual(seen, [['f', 'create'], ['f', 'chmod'], ['f', 'write']])
})

// item dp:87
test("signed links", async () => {
  await sandbox.files.write('by-link.txt', 'linked')
  assert.equal(await (await fetch(await sandbox.downloadUrl('by-link.txt'))).text(), 'linked')
  const form = new FormData()
  form.append('file', new Blob(['up']), 'x')
  assert.equal((await fetch(await sandbox.uploadUrl('up.txt'), { method: 'POST', body: form })).status, 200)
  assert.equal(await sandbox.files.read('up.txt'), 'up')
})

// item dp:183 cp:170
test("a server in the sandbox", async () => {
  await sandbox.commands.run('nohup python3 -m http.server 8124 --bind 0.0.0.0 >/dev/null 2>&1 & ' +
    'for i in $(seq 100); do ss -Htln sport = :8124 | grep -q . && exit 0; sleep 0.1; done; exit 1')
  assert.equal((await fetch(`https://${sandbox.getHost(8124)}/`)).status, 200)
})
