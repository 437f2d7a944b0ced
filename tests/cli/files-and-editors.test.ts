import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { listen, problemBody, useFakeServer } from './fake-server.ts'
import { waitUntil } from '../wait-until.ts'

const fake = useFakeServer()

describe('CLI: long texts', () => {
  const note = ['conversations', 'note', '77', '--text']
  const sent = () => fake.requests.at(-1)!.input['text']

  it('come from standard input and from files; @@ begins one with @', async () => {
    await fake.wcrm([...note, '-'], { stdin: 'One\nTwo\n' })
    assert.equal(sent(), 'One\nTwo')
    const file = join(fake.home, 'note.txt')
    writeFileSync(file, 'From a file\r\n')
    await fake.wcrm([...note, `@${file}`])
    assert.equal(sent(), 'From a file')
    await fake.wcrm([...note, '@@mara: please look'])
    assert.equal(sent(), '@mara: please look')
    const { exit, stderr } = await fake.wcrm([...note, '@mara: please look'])
    assert.deepEqual([exit, fake.requests.length], [2, 3])
    assert.match(stderr, /begins with @@/)
  })

  it('bytes that are not UTF-8 are refused, wherever they come from', async () => {
    const file = join(fake.home, 'latin.txt')
    const json = join(fake.home, 'latin.json')
    writeFileSync(file, Buffer.from('Jos\xe9', 'latin1'))
    writeFileSync(json, Buffer.from('{"text":"Jos\xe9"}', 'latin1'))
    for (const words of [
      [...note, `@${file}`],
      ['conversations', 'note', '77', '--input', `@${json}`],
    ]) {
      const { exit, stderr } = await fake.wcrm(words)
      assert.deepEqual([exit, fake.requests.length], [2, 0])
      assert.match(stderr, /latin\.\w+ is not UTF-8 text[^]*iconv/)
    }
    // Only a shell can pass such bytes to a process.
    const script = 'exec "$0" bin/wcrm.js conversations note 77 --text "$(printf "Jos\\351")"'
    const child = spawn('sh', ['-c', script, process.execPath], {
      env: { PATH: process.env.PATH, HOME: fake.home, WCRM_URL: fake.url, WCRM_API_KEY: 'wc_test_key' },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const stderr = (await child.stderr.setEncoding('utf8').toArray()).join('')
    if (child.exitCode === null) await once(child, 'exit')
    assert.deepEqual([child.exitCode, fake.requests.length], [2, 0])
    assert.match(stderr, /An argument is not UTF-8 text: "Jos/)
  })

  it('names stay as they are typed', async () => {
    await fake.wcrm(['contacts', 'upsert', '--phone', '+15550100042', '--name', '@ada'])
    assert.equal(fake.requests[0]!.input['name'], '@ada')
  })
})

/** Runs the command line on a terminal of its own, as `script` makes one. */
const onTerminal = (words: string, env: Record<string, string>) =>
  spawn('script', ['-qec', `${process.execPath} bin/wcrm.js ${words}`, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH ?? '',
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
      HOME: fake.home,
      TERM: 'xterm',
      WCRM_URL: fake.url,
      WCRM_API_KEY: 'wc_live_x',
      WCRM_KEYCHAIN: 'off',
      ...env,
    },
  })

const hasScript = (() => {
  try {
    return execFileSync('script', ['--version']).includes('util-linux')
  } catch {
    return false
  }
})()

const makeEditor = (name: string, body: string): { editor: string; folder: string } => {
  const folder = join(fake.home, name)
  mkdirSync(folder)
  const editor = join(fake.home, `${name}.sh`)
  writeFileSync(editor, `#!/bin/sh\n${body}\n`)
  chmodSync(editor, 0o700)
  return { editor, folder }
}

describe('CLI: an editor for a text that was left out', { skip: !hasScript }, () => {
  it('sends what was written and leaves no file', async () => {
    const { editor, folder } = makeEditor(
      'edit',
      'stat -c %a "$1" > "$HOME/mode"; sed -i "1s/.*/Hello 👋/" "$1"',
    )
    fake.responses = [{ body: { message: {} } }]
    const child = onTerminal('conversations note 77', { EDITOR: `${editor}`, TMPDIR: folder })
    child.stdout.resume()
    assert.equal((await once(child, 'exit'))[0], 0)
    assert.deepEqual(fake.requests[0]!.input, { conversation_id: '77', text: 'Hello 👋' })
    assert.equal(readFileSync(join(fake.home, 'mode'), 'utf8'), '600\n')
    assert.deepEqual(readdirSync(folder), [])
  })

  it('names the text in the command that repeats it', async () => {
    const { editor, folder } = makeEditor('open', 'echo "It is done" > "$1"')
    fake.responses = [{ status: 504, body: '<html>' }]
    const child = onTerminal('conversations note 77', { EDITOR: editor, TMPDIR: folder, COLUMNS: '400' })
    let shown = ''
    child.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()))
    assert.equal((await once(child, 'exit'))[0], 8)
    assert.match(
      shown.replaceAll(/[\s│]+/g, ' '),
      /wcrm conversations note 77 --text 'It is done' --idempotency-key/,
    )
  })

  it('sends nothing for an empty text, or when the editor fails', async () => {
    for (const [name, body, code] of [
      ['empty', 'true', 6],
      ['fails', 'exit 3', 2],
    ] as const) {
      const { editor, folder } = makeEditor(name, body)
      const child = onTerminal('conversations reply 77', { VISUAL: editor, TMPDIR: folder })
      child.stdout.resume()
      assert.equal((await once(child, 'exit'))[0], code)
      assert.deepEqual([readdirSync(folder), fake.requests.length], [[], 0])
    }
  })

  it('leaves no file when it is killed', async () => {
    const { editor, folder } = makeEditor(
      'killed',
      'awk "/^PPid/ {print \\$2}" "/proc/$PPID/status" > "$HOME/pid"; exec sleep 30',
    )
    const child = onTerminal('conversations note 77', { EDITOR: editor, TMPDIR: folder })
    child.stdout.resume()
    const pid = join(fake.home, 'pid')
    await waitUntil('the editor runs', () => existsSync(pid) && readFileSync(pid, 'utf8') !== '')
    assert.equal(readdirSync(folder).length, 1)
    const command = readFileSync(`/proc/${Number(readFileSync(pid, 'utf8'))}/cmdline`, 'utf8')
    assert.match(command, /bin\/wcrm\.js/)
    process.kill(Number(readFileSync(pid, 'utf8')), 'SIGKILL')
    await waitUntil('its file is gone', () => readdirSync(folder).length === 0)
    assert.deepEqual(readdirSync(folder), [])
    child.kill()
  })
})

describe('CLI: messages media --output', () => {
  const body = {
    content_type: 'image/jpeg',
    file_name: 'bag.jpg',
    size: 5,
    url: 'https://x',
    expires_at: null,
  }

  /** A server that describes the file and sends `bytes` of it, or breaks off after them. */
  const serve = async (bytes: string, { broken = false, status = 200 } = {}) => {
    const server = createServer((request, response) => {
      request.resume()
      if (request.method === 'POST')
        return response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body))
      const isRedirected = request.url === '/elsewhere'
      if (isRedirected) assert.equal(request.headers.authorization, undefined)
      else assert.equal(request.url, '/v1/messages/901/media')
      if (status === 302 && !isRedirected) return response.writeHead(302, { Location: '/elsewhere' }).end()
      if (status === 404) return response.writeHead(status).end(JSON.stringify(problemBody('not_found')))
      response.writeHead(200, {
        'Content-Type': 'image/jpeg',
        'Content-Length': broken ? '99' : String(bytes.length),
      })
      response.write(bytes, () => (broken ? response.destroy() : response.end()))
    })
    await listen(server)
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return { url, close: () => (server.closeAllConnections(), server.close()) }
  }
  const media = ['messages', 'media', '901', '--output']

  it('saves the bytes, replaces a file only when they are all there, and writes to a pipe', async () => {
    const file = join(fake.home, 'photo.jpg')
    writeFileSync(file, 'before')
    for (const [server, exit, content] of [
      [await serve('by', { broken: true }), 8, 'before'],
      [await serve('', { status: 404 }), 3, 'before'],
      [await serve('bytes'), 0, 'bytes'],
      [await serve('elsewhere', { status: 302 }), 0, 'elsewhere'],
    ] as const) {
      const result = await fake.wcrm([...media, file, '--url', server.url, '--json'])
      assert.deepEqual([result.exit, readFileSync(file, 'utf8')], [exit, content], result.stderr)
      assert.equal(result.stdout, exit === 0 ? `${JSON.stringify(body)}\n` : '')
      server.close()
    }
    const redirected = await serve('elsewhere', { status: 302 })
    const api = ['api', 'GET', '/v1/messages/901/media', '--url', redirected.url]
    assert.equal((await fake.wcrm(api)).stdout, 'elsewhere')
    redirected.close()
    const server = await serve('bytes')
    assert.equal((await fake.wcrm([...media, '-', '--url', server.url])).stdout, 'bytes')
    server.close()
    assert.equal((await fake.wcrm([...media, fake.home])).exit, 2)
  })
})
