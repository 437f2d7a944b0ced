import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { sql } from 'kysely'
import { create, toBuffer } from 'qrcode'
import { runCommandLine } from '../../cli/main.ts'
import { drawQrCode } from '../../cli/qr.ts'
import { everyDatabase } from '../doors.ts'
import { createIdempotencyKey, createLinkScene } from './short-links.ts'

everyDatabase('QR code and page of a short link', (server) => {
  const createScene = () => createLinkScene(server())

  it('QR images are served without a key at their address', async () => {
    const { createLink } = await createScene()
    const png = (await createLink()).body
    const svg = (await createLink({ message: 'Yo', qr_format: 'SVG' }, createIdempotencyKey())).body
    const none = (await createLink({ message: 'None', qr_format: 'NONE' }, createIdempotencyKey())).body
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
    const svgText = await (await fetch(svg.qr_image_url)).text()
    assert.match(svgText, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" width="512" height="512"/)
    assert.doesNotMatch(svgText, /<script|href/)
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
    const { createLink, workspace, run } = await createScene()
    const { url, channel } = (await createLink({ message: '<b>"Hi" & it\'s me</b> 👋' })).body
    const page = await fetch(url)
    const text = await page.text()
    assert.deepEqual([page.status, page.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
    assert.match(
      page.headers.get('content-security-policy')!,
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
    // A link of the real provider opens the chat itself.
    await sql`
      update short_links set url = 'https://wa.me/message/ABC'
      where workspace_id = ${workspace.id}`.execute(server().db)
    const other = await (await fetch(url)).text()
    assert.ok(other.includes('href="https://wa.me/message/ABC"') && !other.includes('sandbox'), other)
    assert.equal((await run('messaging_list_short_links')).data[0].url, 'https://wa.me/message/ABC')
    for (const code of ['AAAAAAAAAAAAAA', 'x', '%00', '%ff', 'x'.repeat(5000), '..%2f']) {
      const missing = await fetch(`${server().url}/message/${code}`)
      assert.deepEqual(
        [missing.status, missing.headers.get('content-type')],
        [404, 'text/html; charset=utf-8'],
        code,
      )
    }
  })

  it('the CLI draws the QR code on a terminal only', async () => {
    const { createLink, workspace } = await createScene()
    const { id, url } = (await createLink()).body
    const runOnTerminal = async (argv: string[], isTTY: boolean, env: Record<string, string> = {}) => {
      const stream = (fields: object = {}) => Object.assign(new PassThrough(), { isTTY }, fields)
      const [stdin, stdout, stderr] = [stream(), stream({ columns: 100 }), stream({ columns: 100 })]
      stdin.end()
      let text = ''
      stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      assert.equal(
        await runCommandLine(argv, {
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
    const getLink = ['short-links', 'get', id]
    const terminal = { width: 100, color: true }
    assert.ok((await runOnTerminal(getLink, true)).endsWith(await drawQrCode(url, terminal)))
    assert.ok(
      (await runOnTerminal(getLink, true, { NO_COLOR: '1' })).endsWith(
        await drawQrCode(url, { ...terminal, color: false }),
      ),
    )
    for (const text of [
      await runOnTerminal(getLink, false),
      await runOnTerminal([...getLink, '--json'], true),
      await runOnTerminal(['short-links', 'list'], true),
      await runOnTerminal(['short-links', 'create', '--message', 'Yo', '--dry-run'], true),
    ])
      assert.doesNotMatch(text, /[▀▄█]/)
    const created = await runOnTerminal(['short-links', 'create', '--message', 'Yo'], true)
    assert.match(created, /[▀▄█]/)
    assert.ok(created.includes(`${server().url}/message/`), created)
  })
})

describe('QR code on a terminal', () => {
  const url = 'https://wcrm.example.com/message/ANED2T5QRU7HG1'
  const { modules } = create(url, { errorCorrectionLevel: 'M' })

  /** Returns the modules that the characters draw, margin included; true: dark. */
  const parseModules = (rows: string[], drawn: 'dark' | 'light'): boolean[][] =>
    rows.flatMap((row) => {
      const chars = [...row]
      return [
        chars.map((c) => '▀█'.includes(c) === (drawn === 'dark')),
        chars.map((c) => '▄█'.includes(c) === (drawn === 'dark')),
      ]
    })
  const assertModules = (actual: boolean[][]) => {
    for (const [y, row] of actual.entries())
      for (const [x, dark] of row.entries()) {
        const inside = x >= 4 && y >= 4 && x < modules.size + 4 && y < modules.size + 4
        assert.equal(dark, inside && modules.get(y - 4, x - 4) === 1, `${x} ${y}`)
      }
  }

  it('is black on white with color, and uses light blocks without color', async () => {
    const colored = (await drawQrCode(url, { width: 80, color: true })).trimEnd().split('\n')
    assert.ok(colored.every((row) => row.startsWith('\x1B[38;5;16;48;5;231m') && row.endsWith('\x1B[0m')))
    const characters = colored.map((row) => stripVTControlCharacters(row))
    assertModules(parseModules(characters, 'dark'))
    assertModules(
      parseModules((await drawQrCode(url, { width: 80, color: false })).trimEnd().split('\n'), 'light'),
    )
  })

  it('is empty when it does not fit', async () => {
    assert.equal(await drawQrCode(url, { width: modules.size + 7, color: true }), '')
    assert.notEqual(await drawQrCode(url, { width: modules.size + 8, color: true }), '')
  })
})
