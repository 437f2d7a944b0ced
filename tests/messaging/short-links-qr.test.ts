import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { create, toBuffer } from 'qrcode'
import { runCommandLine } from '../../cli/main.ts'
import { drawQrCode } from '../../cli/qr.ts'
import { everyDatabase } from '../doors.ts'
import { freshKey, createLinkScene } from './short-links.ts'

everyDatabase('QR code and page of a short link', (server) => {
  const scene = () => createLinkScene(server())

  it('QR images are served without a key at their address', async () => {
    const { make } = await scene()
    const png = (await make()).body
    const svg = (await make({ message: 'Yo', qr_format: 'SVG' }, freshKey())).body
    const none = (await make({ message: 'None', qr_format: 'NONE' }, freshKey())).body
    assert.deepEqual([svg.qr_image_format, none.qr_image_format, none.qr_image_url], ['SVG', null, null])
    for (const [link, type] of [
      [png, 'image/png'],
      [svg, 'image/svg+xml'],
    ] as const) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await fetch(link.qr_image_url, { method })
        assert.deepEqual(
          [status, headers.get('content-type'), headers.get('x-content-type-options')],
          [200, type, 'nosniff'],
        )
        assert.match(headers.get('content-security-policy')!, /default-src 'none'/)
        assert.match(headers.get('cache-control')!, /^public, max-age=\d+$/)
      }
    }
    assert.deepEqual(
      Buffer.from(await (await fetch(png.qr_image_url)).arrayBuffer()),
      await toBuffer(png.url, { type: 'png', width: 512, margin: 4 }),
    )
    const drawn = await (await fetch(svg.qr_image_url)).text()
    assert.match(drawn, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" width="512" height="512"/)
    assert.doesNotMatch(drawn, /<script|href/)
    const name = /[0-9a-f]{32}/.exec(png.qr_image_url)![0]
    for (const path of [
      `${name}.svg`,
      name,
      `${name}.gif`,
      `${'0'.repeat(32)}.png`,
      '%00.png',
      '%ff',
      '..%2f..%2fetc',
      `${name}.png/x`,
    ])
      assert.equal((await fetch(`${server().url}/qr/${path}`)).status, 404, path)
  })

  it('the link page shows the message that will be typed', async () => {
    const { make, workspace, run } = await scene()
    const { url, channel } = (await make({ message: '<b>"Hi" & it\'s me</b> 👋' })).body
    const answer = await fetch(url)
    const text = await answer.text()
    assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
    assert.match(
      answer.headers.get('content-security-policy')!,
      /^default-src 'none'; style-src 'unsafe-inline';/,
    )
    assert.ok(text.includes("&lt;b&gt;&quot;Hi&quot; &amp; it's me&lt;/b&gt; 👋</blockquote>"), text)
    assert.ok(!text.includes('<b>') && !text.includes('<script'), text)
    assert.ok(
      text.includes(
        `href="https://wa.me/15550100001?text=${encodeURIComponent('<b>"Hi" & it\'s me</b> 👋')}"`,
      ),
      text,
    )
    assert.ok(
      text.includes(`--channel ${channel.id} '&lt;b&gt;&quot;Hi&quot; &amp; it'\\''s me&lt;/b&gt; 👋'`),
      text,
    )
    assert.equal((await fetch(url, { method: 'HEAD' })).status, 200)
    // A link of the true provider opens the chat itself.
    await sql`update short_links set url = 'https://wa.me/message/ABC' where workspace_id = ${workspace.id}`.execute(
      server().db,
    )
    const other = await (await fetch(url)).text()
    assert.ok(other.includes('href="https://wa.me/message/ABC"') && !other.includes('sandbox'), other)
    assert.equal((await run('messaging_list_short_links')).data[0].url, 'https://wa.me/message/ABC')
    for (const code of ['AAAAAAAAAAAAAA', 'x', '%00', '%ff', 'x'.repeat(5000), '..%2f']) {
      const absent = await fetch(`${server().url}/message/${code}`)
      assert.deepEqual(
        [absent.status, absent.headers.get('content-type')],
        [404, 'text/html; charset=utf-8'],
        code,
      )
    }
  })

  it('the CLI draws the QR code on a terminal only', async () => {
    const { make, workspace } = await scene()
    const { id, url } = (await make()).body
    const wcrm = async (words: string[], tty: boolean, env: Record<string, string> = {}) => {
      const stream = (more: object = {}) => Object.assign(new PassThrough(), { isTTY: tty }, more)
      const [stdin, stdout, stderr] = [stream(), stream({ columns: 100 }), stream({ columns: 100 })]
      stdin.end()
      let text = ''
      stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      assert.equal(
        await runCommandLine(words, {
          stdin,
          stdout,
          stderr,
          env: {
            WCRM_URL: server().url,
            WCRM_API_KEY: workspace.owner.key,
            XDG_CONFIG_HOME: '/nonexistent',
            ...env,
          },
        }),
        0,
      )
      return text
    }
    const get = ['short-links', 'get', id]
    const look = { width: 100, color: true }
    assert.ok((await wcrm(get, true)).endsWith(await drawQrCode(url, look)))
    assert.ok(
      (await wcrm(get, true, { NO_COLOR: '1' })).endsWith(await drawQrCode(url, { ...look, color: false })),
    )
    for (const text of [
      await wcrm(get, false),
      await wcrm([...get, '--json'], true),
      await wcrm(['short-links', 'list'], true),
      await wcrm(['short-links', 'create', '--message', 'Yo', '--dry-run'], true),
    ])
      assert.doesNotMatch(text, /[▀▄█]/)
    const created = await wcrm(['short-links', 'create', '--message', 'Yo'], true)
    assert.match(created, /[▀▄█]/)
    assert.ok(created.includes(`${server().url}/message/`), created)
  })
})

describe('QR code on a terminal', () => {
  const url = 'https://wcrm.example.com/message/ANED2T5QRU7HG1'
  const { modules } = create(url, { errorCorrectionLevel: 'M' })

  /** The dark modules that the characters show, with their margin. */
  const read = (rows: string[], drawn: 'dark' | 'light'): boolean[][] =>
    rows.flatMap((row) => {
      const chars = [...row]
      return [
        chars.map((c) => '▀█'.includes(c) === (drawn === 'dark')),
        chars.map((c) => '▄█'.includes(c) === (drawn === 'dark')),
      ]
    })
  const assertCode = (shown: boolean[][]) => {
    for (const [y, row] of shown.entries())
      for (const [x, dark] of row.entries()) {
        const inside = x >= 4 && y >= 4 && x < modules.size + 4 && y < modules.size + 4
        assert.equal(dark, inside && modules.get(y - 4, x - 4) === 1, `${x} ${y}`)
      }
  }

  it('is black on white with color, and drawn with light blocks without', async () => {
    const colored = (await drawQrCode(url, { width: 80, color: true })).trimEnd().split('\n')
    assert.ok(colored.every((row) => row.startsWith('\x1B[38;5;16;48;5;231m') && row.endsWith('\x1B[0m')))
    // eslint-disable-next-line no-control-regex -- the escapes are what is taken off
    assertCode(
      read(
        colored.map((row) => row.replaceAll(/\x1B\[[\d;]*m/g, '')),
        'dark',
      ),
    )
    assertCode(read((await drawQrCode(url, { width: 80, color: false })).trimEnd().split('\n'), 'light'))
  })

  it('is left out when it does not fit', async () => {
    assert.equal(await drawQrCode(url, { width: modules.size + 7, color: true }), '')
    assert.notEqual(await drawQrCode(url, { width: modules.size + 8, color: true }), '')
  })
})
