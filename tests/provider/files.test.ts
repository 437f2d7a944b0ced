import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isOutcomeUnknown } from '../../server/provider/port.ts'
import { type Answer, startPeer } from '../peer.ts'
import {
  adapter,
  from,
  ok,
  problemOf,
  refusal,
  say,
  scene,
  setScene,
  shown,
  signal,
  small,
  TOKEN,
} from './scene.ts'
import { recorded } from './recorded.ts'

setScene()

describe('Samples uploaded to the provider', () => {
  const session = 'upload:MTphdHRhY2g=?sig=ARZ_k-x'
  const steps = () =>
    scene.peer.asked.map(({ method, path, query, headers, body }) => [
      method,
      path,
      query.sig,
      headers.authorization,
      headers.file_offset,
      body.toString(),
    ])
  const step = (method: string, offset: string | undefined, body: string) => [
    method,
    '/base/v23.0/upload:MTphdHRhY2g=',
    'ARZ_k-x',
    `OAuth ${TOKEN}`,
    offset,
    body,
  ]

  it('are announced, sent, and known by a handle', async () => {
    say(ok({ id: session }), ok({ h: '4::aW1h' }))
    assert.deepEqual(await scene.provider.uploadSample(small, signal), { handle: '4::aW1h' })
    assert.deepEqual(
      [scene.peer.asked[0]!.method, scene.peer.asked[0]!.path, scene.peer.asked[0]!.query],
      [
        'POST',
        '/base/v23.0/77/uploads',
        { file_name: 'small.png', file_length: '10', file_type: 'image/png' },
      ],
    )
    assert.deepEqual(steps().slice(1), [step('POST', '0', '0123456789')])
  })

  it('go on where a step broke', async () => {
    say(
      ok({ id: session }),
      'drop',
      ok({ id: session, file_offset: 4 }),
      refusal(2, {}, 500),
      ok({ file_offset: '10' }),
      ok({ h: '4::aW1h' }),
    )
    assert.deepEqual(await scene.provider.uploadSample(small, signal), { handle: '4::aW1h' })
    assert.deepEqual(steps().slice(1), [
      step('POST', '0', '0123456789'),
      step('GET', undefined, ''),
      step('POST', '4', '456789'),
      step('GET', undefined, ''),
      step('POST', '10', ''),
    ])
  })

  it('are given up after some steps, and at once when they are refused', async () => {
    say(
      ok({ id: session }),
      ...Array.from({ length: 4 }, (): Answer[] => ['drop', ok({ file_offset: 0 })])
        .flat()
        .slice(0, -1),
    )
    assert.equal((await problemOf(scene.provider.uploadSample(small, signal))).code, 'timeout')
    assert.deepEqual(scene.peer.answers, [])
    say(ok({ id: session }), refusal(190, {}, 401))
    assert.deepEqual(shown(await problemOf(scene.provider.uploadSample(small, signal))), [
      'upstream_error',
      'provider_access',
      false,
    ])
    say(ok({ id: session }), 'drop', ok({ file_offset: 11 }))
    assert.ok(isOutcomeUnknown(await problemOf(scene.provider.uploadSample(small, signal))))
  })

  it('go nowhere a session could lead', async () => {
    for (const id of [
      'upload:../../x',
      '/etc',
      'https://elsewhere.example',
      'upload:',
      'upload:a#b',
      'upload:a b',
      '',
    ]) {
      say(ok({ id }))
      assert.equal(
        (await problemOf(scene.provider.uploadSample(small, signal))).code,
        'upstream_unavailable',
        id,
      )
    }
    assert.deepEqual([...new Set(scene.peer.asked.map(({ path }) => path))], ['/base/v23.0/77/uploads'])
  })

  it('want an app', async () => {
    assert.equal(
      (await problemOf(adapter({ appId: undefined }).uploadSample(small, signal))).code,
      'service_unconfigured',
    )
    assert.deepEqual(scene.peer.asked, [])
  })
})

describe('Files at the provider', () => {
  it('are uploaded as a form', async () => {
    say(ok({ id: 555 }))
    assert.deepEqual(await scene.provider.uploadMedia(from, small, signal), { id: '555' })
    const { path, headers, body } = scene.peer.asked[0]!
    assert.equal(path, `/base/v23.0/${recorded.phone}/media`)
    const form = await new Response(Uint8Array.from(body), {
      headers: { 'Content-Type': headers['content-type']! },
    }).formData()
    const file = form.get('file') as File
    assert.deepEqual(
      [form.get('messaging_product'), form.get('type'), file.name, file.type, await file.text()],
      ['whatsapp', 'image/png', 'small.png', 'image/png', '0123456789'],
    )
  })

  it('are described', async () => {
    say(
      ok({
        url: 'https://lookaside.example/x',
        mime_type: 'image/jpeg',
        sha256: 'ab',
        file_size: '1000',
        id: '5',
        messaging_product: 'whatsapp',
      }),
      ok({ url: 'https://lookaside.example/x', mime_type: 'image/jpeg' }),
    )
    assert.deepEqual(await scene.provider.mediaInfo('5', signal), {
      url: 'https://lookaside.example/x',
      contentType: 'image/jpeg',
      size: 1000,
      sha256: 'ab',
    })
    assert.deepEqual(await scene.provider.mediaInfo('5', signal), {
      url: 'https://lookaside.example/x',
      contentType: 'image/jpeg',
      size: null,
      sha256: null,
    })
    assert.equal(scene.peer.asked[0]!.path, '/base/v23.0/5')
  })

  it('are downloaded with the token, also over a redirect', async () => {
    say({ status: 302, headers: { Location: '/base/real' }, body: '' }, { body: small.bytes })
    assert.equal(
      Buffer.from(await scene.provider.downloadMedia(`${scene.peer.url}/file`, 10, signal)).toString(),
      '0123456789',
    )
    assert.deepEqual(
      scene.peer.asked.map(({ path, headers }) => [path, headers.authorization]),
      [
        ['/file', `Bearer ${TOKEN}`],
        ['/base/real', `Bearer ${TOKEN}`],
      ],
    )
  })

  it('are not read beyond their limit, whether they say their size or not', async () => {
    const endless: Answer = (response) => {
      response.writeHead(200)
      const more = (): void => {
        if (!response.destroyed) response.write(Buffer.alloc(64 * 1024), () => setImmediate(more))
      }
      more()
    }
    for (const answer of [
      { body: small.bytes },
      endless,
      { headers: { 'Content-Length': '100000' }, body: '' },
    ]) {
      say(answer)
      const problem = await problemOf(scene.provider.downloadMedia(`${scene.peer.url}/file`, 9, signal))
      assert.deepEqual([problem.code, problem.extras.limit_bytes], ['payload_too_large', 9])
    }
  })

  it('are not fetched from elsewhere, and nobody else sees the token', async () => {
    const other = await startPeer()
    try {
      const hostile = [
        `${other.url}/file`,
        `${scene.peer.url.replace('http', 'https')}/file`,
        scene.peer.url.replace('http://', 'http://user:pass@'),
        'file:///etc/passwd',
        'data:text/plain,hi',
        '',
        'nonsense',
        'https://127.0.0.1/x',
        'https://[::1]/x',
        'https://2130706433/x',
        'https://0x7f.1/x',
        'https://169.254.169.254/latest',
        'https://localhost/x',
        'https://intranet/x',
        'https://db.internal/x',
        'https://printer.local./x',
        'https://example.com:8443/x',
        'http://example.com/x',
        'ftp://example.com/x',
      ]
      for (const url of hostile)
        assert.deepEqual(
          shown(await problemOf(scene.provider.downloadMedia(url, 10, signal))),
          ['upstream_error', 'media_refused', false],
          url,
        )
      for (const Location of [`${other.url}/file`, 'https://127.0.0.1/x', 'file:///etc/passwd', '//', '']) {
        say({ status: 307, headers: { Location }, body: '' })
        assert.deepEqual(
          shown(await problemOf(scene.provider.downloadMedia(`${scene.peer.url}/file`, 10, signal))),
          ['upstream_error', 'media_refused', false],
          Location,
        )
      }
      assert.deepEqual(other.asked, [])
      say(
        ...Array.from({ length: 4 }, (): Answer => ({
          status: 302,
          headers: { Location: '/round' },
          body: '',
        })),
      )
      assert.equal(
        (await problemOf(scene.provider.downloadMedia(`${scene.peer.url}/round`, 10, signal))).extras.reason,
        'media_refused',
      )
      assert.deepEqual(scene.peer.answers, [])
    } finally {
      await other.close()
    }
  })

  it('may be gone, forbidden, or unavailable', async () => {
    const cases: [Answer, ReturnType<typeof shown>][] = [
      [{ status: 404, body: '' }, ['upstream_error', 'provider_not_found', false]],
      [{ status: 410, body: '' }, ['upstream_error', 'provider_not_found', false]],
      [{ status: 401, body: '' }, ['upstream_error', 'provider_access', false]],
      [{ status: 500, body: '' }, ['upstream_unavailable', undefined, true]],
      ['drop', ['timeout', undefined, true]],
    ]
    for (const [answer, expected] of cases) {
      say(answer)
      assert.deepEqual(
        shown(await problemOf(scene.provider.downloadMedia(`${scene.peer.url}/file`, 10, signal))),
        expected,
      )
    }
  })
})
