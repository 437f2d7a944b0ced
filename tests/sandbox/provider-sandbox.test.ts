import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isOutcomeUnknown } from '../../server/provider/port.ts'
import { everyDatabase } from '../doors.ts'
import { problemOf, shown, signal, small } from '../provider/scene.ts'
import { seasonSale } from '../provider/recorded.ts'
import { anyPhone, sandboxOf } from '../messaging/sends.ts'
import { makeWorkspace } from '../servers.ts'

/**
 * Both sides of the protocol are ours: each call of the adapter is understood by the sandbox, over HTTP,
 * and so are its faults.
 */
everyDatabase('The adapter and the sandbox', (server) => {
  const scene = async () => {
    const workspace = await makeWorkspace(server())
    await server().sync(workspace.id)
    const number = (
      await server()
        .db.selectFrom('channels')
        .select(['account_id', 'provider_phone_number_id'])
        .where('workspace_id', '=', workspace.id)
        .where('provider_phone_number_id', 'is not', null)
        .execute()
    )[0]!
    return {
      provider: server().app.provider,
      account: number.account_id!,
      from: { phoneNumberId: number.provider_phone_number_id! },
      sandbox: sandboxOf(server(), workspace),
    }
  }
  const text = (to: string, reference: string) => ({
    to,
    reference,
    body: { type: 'text', text: { body: 'Hi' } },
  })

  it('agree on messages, and on those whose answer was lost', async () => {
    const { provider, from, sandbox } = await scene()
    const to = anyPhone()
    const reference = `msg_${to}`
    const refused = await problemOf(provider.send(from, text(to, reference), signal))
    assert.deepEqual(
      [...shown(refused), refused.extras.provider_code],
      ['window_closed', undefined, false, 131047],
    )
    await sandbox.say({ from: `+${to}`, text: 'Hello' })
    assert.equal(await provider.findSent(from, reference, signal), 'absent')
    await sandbox.fault({ to: `+${to}`, drop_answer: true })
    assert.ok(isOutcomeUnknown(await problemOf(provider.send(from, text(to, reference), signal))))
    const [{ id } = assert.fail('it is not there')] = await sandbox.sent(to)
    assert.deepEqual(await provider.findSent(from, reference, signal), { id })
    await sandbox.fault({ to: `+${to}`, code: 130429 })
    assert.deepEqual(shown(await problemOf(provider.send(from, text(to, 'another'), signal))), [
      'upstream_unavailable',
      'throttled',
      false,
    ])
    assert.equal(await provider.findSent(from, 'another', signal), 'absent')
  })

  it('agree on numbers and subscriptions', async () => {
    const { provider, account, from } = await scene()
    const numbers = await provider.phoneNumbers(account, signal)
    assert.deepEqual(
      numbers.map(({ id, status }) => [id, status]),
      [[from.phoneNumberId, 'CONNECTED']],
    )
    await provider.subscribe(account, undefined, signal)
    assert.deepEqual(shown(await problemOf(provider.phoneNumbers('123', signal))), [
      'upstream_error',
      'provider_not_found',
      false,
    ])
  })

  it('agree on templates', async () => {
    const { provider, account } = await scene()
    const created = await provider.createTemplate(account, seasonSale, signal)
    assert.equal(created.status, 'PENDING')
    assert.deepEqual(shown(await problemOf(provider.createTemplate(account, seasonSale, signal))), [
      'conflict',
      'duplicate',
      false,
    ])
    await provider.createTemplate(account, { ...seasonSale, language: 'de' }, signal)
    await provider.createTemplate(
      account,
      { ...seasonSale, name: 'season_sale_2', allowCategoryChange: true },
      signal,
    )
    assert.equal((await provider.listTemplates(account, undefined, signal)).length, 3)
    const [german, english] = (await provider.listTemplates(account, 'season_sale', signal)).toSorted(
      (a, b) => a.language.localeCompare(b.language),
    )
    assert.deepEqual(
      [english!.id, english!.language, english!.components, english!.rejectedReason, german!.language],
      [created.id, 'en_US', seasonSale.components, null, 'de'],
    )
    assert.deepEqual(
      Object.keys((await provider.archiveTemplates(account, [created.id, '42'], signal)).failed).toSorted(),
      ['42', created.id].toSorted(),
    )
    assert.deepEqual((await provider.unarchiveTemplates(account, ['42'], signal)).unarchived, [])
    await provider.deleteTemplate(account, { name: 'season_sale', id: created.id }, signal)
    assert.deepEqual(
      (await provider.listTemplates(account, 'season_sale', signal)).map((t) => t.language),
      ['de'],
    )
    const taken = await problemOf(provider.createTemplate(account, seasonSale, signal))
    assert.deepEqual(
      [...shown(taken), taken.extras.provider_subcode],
      ['conflict', 'duplicate', false, 2388023],
    )
  })

  it('agree on short links, and on all of many', async () => {
    const { provider, from, sandbox } = await scene()
    const link = await provider.createLink(from, { message: 'Hi, I saw 5 & more', qrFormat: 'SVG' }, signal)
    assert.match(link.code, /^[A-Z2-7]{14}$/)
    const image = Buffer.from(await provider.downloadMedia(link.qrImageUrl!, 1_000_000, signal)).toString()
    assert.match(image, /<svg/)
    assert.deepEqual(
      [
        (await provider.findLink(from, link.code, signal))?.message,
        await provider.findLink(from, 'A'.repeat(14), signal),
      ],
      [link.message, undefined],
    )
    assert.equal(
      (await provider.updateLink(from, { code: link.code, message: 'Other' }, signal)).message,
      'Other',
    )
    for (let n = 0; n < 30; n++)
      await provider.createLink(from, { message: `Link ${n}`, qrFormat: null }, signal)
    const all = await provider.listLinks(from, signal)
    assert.deepEqual(
      all.map((l) => l.message),
      [...Array.from({ length: 30 }, (_, n) => `Link ${29 - n}`), 'Other'],
    )
    await provider.deleteLink(from, link.code, signal)
    assert.equal(await provider.findLink(from, link.code, signal), undefined)
    await sandbox.fault({ on: 'links', drop_answer: true })
    assert.ok(
      isOutcomeUnknown(
        await problemOf(provider.createLink(from, { message: 'Lost', qrFormat: 'PNG' }, signal)),
      ),
    )
    assert.equal((await provider.listLinks(from, signal))[0]!.message, 'Lost')
  })

  it('agree on files and samples', async () => {
    const { provider, from } = await scene()
    const png = {
      ...small,
      bytes: Buffer.from(
        'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
        'base64',
      ),
    }
    const { id } = await provider.uploadMedia(from, png, signal)
    const info = await provider.mediaInfo(id, signal)
    assert.deepEqual([info.contentType, info.size], ['image/png', png.bytes.byteLength])
    assert.deepEqual(Buffer.from(await provider.downloadMedia(info.url, 1000, signal)), png.bytes)
    assert.equal(
      (await problemOf(provider.downloadMedia(info.url, png.bytes.byteLength - 1, signal))).code,
      'payload_too_large',
    )
    assert.match((await provider.uploadSample(png, signal)).handle, /^4::/)
    const refused = await problemOf(provider.uploadSample({ ...png, contentType: 'text/html' }, signal))
    assert.deepEqual(shown(refused), ['upstream_error', 'provider_refused', false])
  })
})
