import { isOutcomeUnknown } from '../../server/kernel/open-outcomes.ts'
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import { captureProblem, summarizeProblem, signal, smallFile } from '../provider/adapter-fixture.ts'
import { seasonSale } from '../provider/recorded-exchanges.ts'
import { generatePhone, createSandboxDriver } from '../messaging/fixtures.ts'
import { makeWorkspace } from '../servers.ts'
import { downloadFile } from '../provider/download.ts'

// Both sides of the protocol are ours: the sandbox understands every call of the adapter over HTTP, and the
// adapter understands the sandbox's errors.
everyDatabase('Adapter with the sandbox', (server) => {
  const setUp = async () => {
    const workspace = await makeWorkspace(server())
    await server().sync(workspace.id)
    const channel = (
      await server()
        .db.selectFrom('channels')
        .select(['account_id', 'provider_phone_number_id'])
        .where('workspace_id', '=', workspace.id)
        .where('provider_phone_number_id', 'is not', null)
        .execute()
    )[0]!
    return {
      provider: server().app.provider,
      account: channel.account_id!,
      sender: { phoneNumberId: channel.provider_phone_number_id! },
      sandbox: createSandboxDriver(server(), workspace),
    }
  }
  const buildText = (to: string, reference: string) => ({
    to,
    reference,
    body: { type: 'text', text: { body: 'Hi' } },
  })

  it('messages: send, find a message whose response was lost, and report errors', async () => {
    const { provider, sender, sandbox } = await setUp()
    const to = generatePhone()
    const reference = `msg_${to}`
    const closed = await captureProblem(provider.send(sender, buildText(to, reference), signal))
    assert.deepEqual(
      [...summarizeProblem(closed), closed.extras.provider_code],
      ['window_closed', undefined, false, 131047],
    )
    await sandbox.say({ from: `+${to}`, text: 'Hello' })
    assert.equal(await provider.findSent(sender, reference, signal), 'absent')
    await sandbox.fault({ to: `+${to}`, drop_answer: true })
    assert.ok(isOutcomeUnknown(await captureProblem(provider.send(sender, buildText(to, reference), signal))))
    const [{ id } = assert.fail('the message was not stored')] = await sandbox.sent(to)
    assert.deepEqual(await provider.findSent(sender, reference, signal), { id })
    await sandbox.fault({ to: `+${to}`, code: 130429 })
    assert.deepEqual(
      summarizeProblem(await captureProblem(provider.send(sender, buildText(to, 'another'), signal))),
      ['upstream_unavailable', 'throttled', false],
    )
    assert.equal(await provider.findSent(sender, 'another', signal), 'absent')
  })

  it('phone numbers and subscriptions', async () => {
    const { provider, account, sender } = await setUp()
    const numbers = await provider.phoneNumbers(account, signal)
    assert.deepEqual(
      numbers.map(({ id, status }) => [id, status]),
      [[sender.phoneNumberId, 'CONNECTED']],
    )
    await provider.subscribe(account, undefined, signal)
    assert.deepEqual(summarizeProblem(await captureProblem(provider.phoneNumbers('123', signal))), [
      'upstream_error',
      'provider_not_found',
      false,
    ])
  })

  it('templates: create, list, archive, delete, and report duplicates', async () => {
    const { provider, account } = await setUp()
    const created = await provider.createTemplate(account, seasonSale, signal)
    assert.equal(created.status, 'PENDING')
    assert.deepEqual(
      summarizeProblem(await captureProblem(provider.createTemplate(account, seasonSale, signal))),
      ['conflict', 'duplicate', false],
    )
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
    const duplicate = await captureProblem(provider.createTemplate(account, seasonSale, signal))
    assert.deepEqual(
      [...summarizeProblem(duplicate), duplicate.extras.provider_subcode],
      ['conflict', 'duplicate', false, 2388023],
    )
  })

  it('short links: create, read, update, delete, and list all pages', async () => {
    const { provider, sender, sandbox } = await setUp()
    const link = await provider.createLink(sender, { message: 'Hi, I saw 5 & more', qrFormat: 'SVG' }, signal)
    assert.match(link.code, /^[A-Z2-7]{14}$/)
    const image = (await downloadFile(provider, link.qrImageUrl!, 1_000_000, signal)).toString()
    assert.match(image, /<svg/)
    assert.deepEqual(
      [
        (await provider.findLink(sender, link.code, signal))?.message,
        await provider.findLink(sender, 'A'.repeat(14), signal),
      ],
      [link.message, undefined],
    )
    assert.equal(
      (await provider.updateLink(sender, { code: link.code, message: 'Other' }, signal)).message,
      'Other',
    )
    for (let n = 0; n < 30; n++)
      await provider.createLink(sender, { message: `Link ${n}`, qrFormat: null }, signal)
    const all = await provider.listLinks(sender, signal)
    assert.deepEqual(
      all.map((listed) => listed.message),
      [...Array.from({ length: 30 }, (_, n) => `Link ${29 - n}`), 'Other'],
    )
    await provider.deleteLink(sender, link.code, signal)
    assert.equal(await provider.findLink(sender, link.code, signal), undefined)
    await sandbox.fault({ on: 'links', drop_answer: true })
    assert.ok(
      isOutcomeUnknown(
        await captureProblem(provider.createLink(sender, { message: 'Lost', qrFormat: 'PNG' }, signal)),
      ),
    )
    assert.equal((await provider.listLinks(sender, signal))[0]!.message, 'Lost')
  })

  it('media and template samples: upload, describe and download', async () => {
    const { provider, sender } = await setUp()
    const png = {
      ...smallFile,
      bytes: Buffer.from(
        'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
        'base64',
      ),
    }
    const { id } = await provider.uploadMedia(sender, png, signal)
    const info = await provider.mediaInfo(id, signal)
    assert.deepEqual([info.contentType, info.size], ['image/png', png.bytes.byteLength])
    assert.deepEqual(await downloadFile(provider, info.url, 1000, signal), png.bytes)
    assert.equal(
      (await captureProblem(downloadFile(provider, info.url, png.bytes.byteLength - 1, signal))).code,
      'payload_too_large',
    )
    assert.match((await provider.uploadSample(png, signal)).handle, /^4::/)
    const rejected = await captureProblem(provider.uploadSample({ ...png, contentType: 'text/html' }, signal))
    assert.deepEqual(summarizeProblem(rejected), ['upstream_error', 'provider_refused', false])
  })
})
