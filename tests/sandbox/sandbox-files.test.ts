import assert from 'node:assert/strict'
import { it } from 'node:test'
import { assertError, CUSTOMER, PNG, postMessage, writeAsCustomer } from './sandbox-calls.ts'
import { buildTextMessage, everySandbox } from './sandbox-fixture.ts'

everySandbox('Sandbox: files and short links', (withSandbox) => {
  it('files: media upload as a form, resumable upload of samples', async () => {
    await withSandbox(async (fixture) => {
      const form = (type: string, bytes: Uint8Array = PNG) => {
        const data = new FormData()
        data.set('messaging_product', 'whatsapp')
        data.set('type', type)
        data.set('file', new Blob([bytes as Uint8Array<ArrayBuffer>], { type }), 'a.png')
        return data
      }
      const { body: media } = await fixture.call('POST', `v23.0/${fixture.number}/media`, form('image/png'))
      await writeAsCustomer(fixture)
      assert.equal(
        (
          await postMessage(fixture, {
            ...buildTextMessage(CUSTOMER, ''),
            type: 'image',
            image: { id: media.id, caption: 'x' },
          })
        ).status,
        200,
      )
      assertError(
        await postMessage(fixture, {
          ...buildTextMessage(CUSTOMER, ''),
          type: 'video',
          video: { id: media.id },
        }),
        400,
        131053,
      )
      assertError(
        await fixture.call('POST', `v23.0/${fixture.number}/media`, form('text/html')),
        400,
        100,
        /following types/,
      )
      assertError(
        await fixture.call(
          'POST',
          `v23.0/${fixture.number}/media`,
          form('image/webp', new Uint8Array(600 * 1024)),
        ),
        400,
        131053,
      )
      assert.deepEqual((await fixture.call('DELETE', `v23.0/${media.id}`)).body, { success: true })
      assertError(await fixture.call('GET', `v23.0/${media.id}`), 400, 100)

      const { body: session } = await fixture.call(
        'POST',
        'v23.0/app/uploads?file_name=a.png&file_length=10&file_type=image%2Fpng',
      )
      assert.match(session.id, /^upload:MTph/)
      const uploadPart = (offset: number, bytes: Uint8Array) =>
        fixture.call('POST', `v23.0/${session.id}`, bytes, { file_offset: String(offset) })
      assert.deepEqual((await uploadPart(0, new Uint8Array(4))).body, { id: session.id, file_offset: 4 })
      assertError(await uploadPart(0, new Uint8Array(4)), 400, 100)
      assert.deepEqual((await fixture.call('GET', `v23.0/${session.id}`)).body, {
        id: session.id,
        file_offset: 4,
      })
      const { body: completed } = await uploadPart(4, new Uint8Array(6))
      assert.match(completed.h, /^4::aW1hZ2UvcG5n:ARa/)
      assert.deepEqual((await uploadPart(10, new Uint8Array(0))).body, completed)
    })
  })
})
