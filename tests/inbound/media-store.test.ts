import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { createMediaStore } from '../../server/media/store.ts'
import { openMediaUrl } from '../../server/media/urls.ts'
import { createSealer } from '../../server/sealer.ts'
import { createSecretRing } from '../../server/secret.ts'

it('media store: replaces whole files, restricts permissions and rejects invalid keys', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-media-'))
  try {
    const store = createMediaStore(folder)
    for (const text of ['first', 'second']) await store.write('7/42', Buffer.from(text))
    assert.equal(await (await store.read('7/42'))!.text(), 'second')
    assert.deepEqual(readdirSync(join(folder, '7')), ['42'])
    assert.deepEqual(
      [statSync(join(folder, '7', '42')).mode & 0o777, statSync(join(folder, '7')).mode & 0o777],
      [0o600, 0o700],
    )
    assert.equal(await store.read('7/43'), undefined)
    for (const key of ['../7/42', '7/../8', '7/42/x', '7', '', '/7/42', '7/42.part'])
      await assert.rejects(store.write(key, Buffer.from('x')), key)
    await store.remove('7/42')
    await store.remove('7/42')
    assert.equal(await store.read('7/42'), undefined)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it('media URL: expires, and opens only with the secret it was sealed with', () => {
  const seal = createSealer(createSecretRing(['a secret of at least sixteen']), 'media')
  assert.deepEqual(openMediaUrl(seal, seal.seal(`1 2 ${Date.now() + 1000}`, 'media')), {
    workspaceId: '1',
    messageId: '2',
    hasExpired: false,
  })
  assert.equal(openMediaUrl(seal, seal.seal(`1 2 ${Date.now() - 1}`, 'media'))?.hasExpired, true)
  assert.equal(openMediaUrl(seal, seal.seal(`1 2 ${Date.now() + 1000}`, 'cursor')), undefined)
  assert.equal(
    openMediaUrl(
      createSealer(createSecretRing(['another secret of sixteen']), 'media'),
      seal.seal(`1 2 ${Date.now() + 1000}`, 'media'),
    ),
    undefined,
  )
})
