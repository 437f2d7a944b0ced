import { isOutcomeUnknown } from '../../server/kernel/open-outcomes.ts'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createWebhookGuard } from '../../server/outbound-guard.ts'
import { type Answer, startPeer } from '../peer.ts'
import {
  createTestAdapter,
  sender,
  okAnswer,
  captureProblem,
  errorAnswer,
  queueAnswers,
  fixture,
  useAdapterFixture,
  summarizeProblem,
  signal,
  smallFile,
  TOKEN,
} from './adapter-fixture.ts'
import { recordedIds } from './recorded-exchanges.ts'
import { downloadFile } from './download.ts'

useAdapterFixture()

describe('Adapter: template samples', () => {
  const session = 'upload:MTphdHRhY2g=?sig=ARZ_k-x'
  const listSteps = () =>
    fixture.peer.asked.map(({ method, path, query, headers, body }) => [
      method,
      path,
      query.sig,
      headers.authorization,
      headers.file_offset,
      body.toString(),
    ])
  const buildStep = (method: string, offset: string | undefined, body: string) => [
    method,
    '/base/v23.0/upload:MTphdHRhY2g=',
    'ARZ_k-x',
    `OAuth ${TOKEN}`,
    offset,
    body,
  ]

  it('upload: creates a session, sends the bytes, and returns the handle', async () => {
    queueAnswers(okAnswer({ id: session }), okAnswer({ h: '4::aW1h' }))
    assert.deepEqual(await fixture.provider.uploadSample(smallFile, signal), { handle: '4::aW1h' })
    assert.deepEqual(
      [fixture.peer.asked[0]!.method, fixture.peer.asked[0]!.path, fixture.peer.asked[0]!.query],
      [
        'POST',
        '/base/v23.0/77/uploads',
        { file_name: 'small.png', file_length: '10', file_type: 'image/png' },
      ],
    )
    assert.deepEqual(listSteps().slice(1), [buildStep('POST', '0', '0123456789')])
  })

  it('upload: resumes at the offset of the provider after a failure', async () => {
    queueAnswers(
      okAnswer({ id: session }),
      'drop',
      okAnswer({ id: session, file_offset: 4 }),
      errorAnswer(2, {}, 500),
      okAnswer({ file_offset: '10' }),
      okAnswer({ h: '4::aW1h' }),
    )
    assert.deepEqual(await fixture.provider.uploadSample(smallFile, signal), { handle: '4::aW1h' })
    assert.deepEqual(listSteps().slice(1), [
      buildStep('POST', '0', '0123456789'),
      buildStep('GET', undefined, ''),
      buildStep('POST', '4', '456789'),
      buildStep('GET', undefined, ''),
      buildStep('POST', '10', ''),
    ])
  })

  it('upload: fails after four attempts, or immediately on a rejection', async () => {
    queueAnswers(
      okAnswer({ id: session }),
      ...Array.from({ length: 4 }, (): Answer[] => ['drop', okAnswer({ file_offset: 0 })])
        .flat()
        .slice(0, -1),
    )
    assert.equal((await captureProblem(fixture.provider.uploadSample(smallFile, signal))).code, 'timeout')
    assert.deepEqual(fixture.peer.answers, [])
    queueAnswers(okAnswer({ id: session }), errorAnswer(190, {}, 401))
    assert.deepEqual(
      summarizeProblem(await captureProblem(fixture.provider.uploadSample(smallFile, signal))),
      ['upstream_error', 'provider_access', false],
    )
    queueAnswers(okAnswer({ id: session }), 'drop', okAnswer({ file_offset: 11 }))
    assert.ok(isOutcomeUnknown(await captureProblem(fixture.provider.uploadSample(smallFile, signal))))
  })

  it('session ids that would change the path are rejected', async () => {
    for (const id of [
      'upload:../../x',
      '/etc',
      'https://elsewhere.example',
      'upload:',
      'upload:a#b',
      'upload:a b',
      '',
    ]) {
      queueAnswers(okAnswer({ id }))
      assert.equal(
        (await captureProblem(fixture.provider.uploadSample(smallFile, signal))).code,
        'upstream_unavailable',
        id,
      )
    }
    assert.deepEqual([...new Set(fixture.peer.asked.map(({ path }) => path))], ['/base/v23.0/77/uploads'])
  })

  it('an app id is required', async () => {
    assert.equal(
      (await captureProblem(createTestAdapter({ appId: undefined }).uploadSample(smallFile, signal))).code,
      'service_unconfigured',
    )
    assert.deepEqual(fixture.peer.asked, [])
  })
})

describe('Adapter: media', () => {
  it('upload: multipart form', async () => {
    queueAnswers(okAnswer({ id: 555 }))
    assert.deepEqual(await fixture.provider.uploadMedia(sender, smallFile, signal), { id: '555' })
    const { path, headers, body } = fixture.peer.asked[0]!
    assert.equal(path, `/base/v23.0/${recordedIds.phone}/media`)
    const form = await new Response(Uint8Array.from(body), {
      headers: { 'Content-Type': headers['content-type']! },
    }).formData()
    const file = form.get('file') as File
    assert.deepEqual(
      [form.get('messaging_product'), form.get('type'), file.name, file.type, await file.text()],
      ['whatsapp', 'image/png', 'small.png', 'image/png', '0123456789'],
    )
  })

  it('mediaInfo: URL, type, size and hash', async () => {
    queueAnswers(
      okAnswer({
        url: 'https://lookaside.example/x',
        mime_type: 'image/jpeg',
        sha256: 'ab',
        file_size: '1000',
        id: '5',
        messaging_product: 'whatsapp',
      }),
      okAnswer({ url: 'https://lookaside.example/x', mime_type: 'image/jpeg' }),
    )
    assert.deepEqual(await fixture.provider.mediaInfo('5', signal), {
      url: 'https://lookaside.example/x',
      contentType: 'image/jpeg',
      size: 1000,
      sha256: 'ab',
    })
    assert.deepEqual(await fixture.provider.mediaInfo('5', signal), {
      url: 'https://lookaside.example/x',
      contentType: 'image/jpeg',
      size: null,
      sha256: null,
    })
    assert.equal(fixture.peer.asked[0]!.path, '/base/v23.0/5')
  })

  it('download: sends the token, also after a redirect to the same host', async () => {
    queueAnswers({ status: 302, headers: { Location: '/base/real' }, body: '' }, { body: smallFile.bytes })
    assert.equal(
      (await downloadFile(fixture.provider, `${fixture.peer.url}/file`, 10, signal)).toString(),
      '0123456789',
    )
    assert.deepEqual(
      fixture.peer.asked.map(({ path, headers }) => [path, headers.authorization]),
      [
        ['/file', `Bearer ${TOKEN}`],
        ['/base/real', `Bearer ${TOKEN}`],
      ],
    )
  })

  it('download: stops at the size limit, with or without Content-Length', async () => {
    const endless: Answer = (response) => {
      response.writeHead(200)
      const writeMore = (): void => {
        if (!response.destroyed) response.write(Buffer.alloc(64 * 1024), () => setImmediate(writeMore))
      }
      writeMore()
    }
    for (const answer of [
      { body: smallFile.bytes },
      endless,
      { headers: { 'Content-Length': '100000' }, body: '' },
    ]) {
      queueAnswers(answer)
      const problem = await captureProblem(
        downloadFile(fixture.provider, `${fixture.peer.url}/file`, 9, signal),
      )
      assert.deepEqual([problem.code, problem.extras.limit_bytes], ['payload_too_large', 9])
    }
  })

  it('download: names that lead to addresses that are not public are refused on the connection', async () => {
    const addresses: Record<string, string[]> = {
      'loopback.example.com': ['127.0.0.1'],
      'loopback6.example.com': ['::1'],
      'mapped.example.com': ['::ffff:127.0.0.1'],
      'mapped-metadata.example.com': ['::ffff:a9fe:a9fe'],
      'nat64.example.com': ['64:ff9b::7f00:1'],
      'unique-local.example.com': ['fd00::1'],
      'link-local.example.com': ['fe80::1'],
      'private.example.com': ['10.0.0.7'],
      'carrier.example.com': ['100.64.0.1'],
      'metadata.example.com': ['169.254.169.254'],
      'mixed.example.com': ['93.184.215.14', '192.168.1.1'],
      'media.fbsbx.com': ['127.0.0.1'],
    }
    const asked: string[] = []
    const resolve = async (name: string): Promise<string[]> => {
      asked.push(name)
      // The second answer for this name is another one: it is the first that counts, on the connection itself.
      if (name === 'rebinding.example.com')
        return asked.filter((one) => one === name).length === 1 ? ['127.0.0.1'] : ['93.184.215.14']
      return addresses[name]!
    }
    const names = [...Object.keys(addresses), 'rebinding.example.com']
    const strict = createTestAdapter({ guard: createWebhookGuard('', resolve) })
    for (const name of names) {
      const download = downloadFile(strict, `https://${name}/file`, 10, signal)
      assert.equal((await captureProblem(download)).extras.reason, 'media_refused', name)
    }
    assert.deepEqual(asked, names)
    // A redirect of the provider leads nowhere else either.
    for (const name of Object.keys(addresses)) {
      queueAnswers({ status: 302, headers: { Location: `https://${name}/latest/meta-data` }, body: '' })
      const download = downloadFile(strict, `${fixture.peer.url}/file`, 10, signal)
      assert.equal((await captureProblem(download)).extras.reason, 'media_refused', name)
    }
    // Where the operator allows an address, it is asked: nothing listens there.
    const open = createTestAdapter({ guard: createWebhookGuard('127.0.0.0/8', resolve) })
    const problem = await captureProblem(downloadFile(open, 'https://loopback.example.com/file', 10, signal))
    assert.equal(problem.extras.reason, 'unreachable')
  })

  it('download: other hosts and schemes are rejected and never receive the token', async () => {
    const other = await startPeer()
    try {
      const hostileUrls = [
        `${other.url}/file`,
        `${fixture.peer.url.replace('http', 'https')}/file`,
        fixture.peer.url.replace('http://', 'http://user:pass@'),
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
      for (const url of hostileUrls)
        assert.deepEqual(
          summarizeProblem(await captureProblem(downloadFile(fixture.provider, url, 10, signal))),
          ['upstream_error', 'media_refused', false],
          url,
        )
      for (const Location of [`${other.url}/file`, 'https://127.0.0.1/x', 'file:///etc/passwd', '//', '']) {
        queueAnswers({ status: 307, headers: { Location }, body: '' })
        assert.deepEqual(
          summarizeProblem(
            await captureProblem(downloadFile(fixture.provider, `${fixture.peer.url}/file`, 10, signal)),
          ),
          ['upstream_error', 'media_refused', false],
          Location,
        )
      }
      assert.deepEqual(other.asked, [])
      queueAnswers(
        ...Array.from({ length: 4 }, (): Answer => ({
          status: 302,
          headers: { Location: '/round' },
          body: '',
        })),
      )
      assert.equal(
        (await captureProblem(downloadFile(fixture.provider, `${fixture.peer.url}/round`, 10, signal))).extras
          .reason,
        'media_refused',
      )
      assert.deepEqual(fixture.peer.answers, [])
    } finally {
      await other.close()
    }
  })

  it('download: 404, 401, 500 and lost connections', async () => {
    const cases: [Answer, ReturnType<typeof summarizeProblem>][] = [
      [{ status: 404, body: '' }, ['upstream_error', 'provider_not_found', false]],
      [{ status: 410, body: '' }, ['upstream_error', 'provider_not_found', false]],
      [{ status: 401, body: '' }, ['upstream_error', 'provider_access', false]],
      [{ status: 500, body: '' }, ['upstream_unavailable', undefined, true]],
      ['drop', ['timeout', undefined, true]],
    ]
    for (const [answer, expected] of cases) {
      queueAnswers(answer)
      assert.deepEqual(
        summarizeProblem(
          await captureProblem(downloadFile(fixture.provider, `${fixture.peer.url}/file`, 10, signal)),
        ),
        expected,
      )
    }
  })
})
