import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sampleFiles } from '../templates/samples.ts'
import { everySandbox, type SandboxFixture } from './sandbox-fixture.ts'

const bodyComponent = { type: 'BODY', text: 'Your order is on its way.' }
const withButtons = (...buttons: object[]) => [bodyComponent, { type: 'BUTTONS', buttons }]
const quickReply = { type: 'QUICK_REPLY', text: 'Yes' }
const otpButtons = { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE' }] }

/** What no draft of the service makes; the corpus of `tests/templates/` has what drafts can get wrong. */
const invalidTemplates: readonly [category: string, components: object[], message: RegExp][] = [
  ['OTHER', [bodyComponent], /category must be one of/],
  ['UTILITY', [], /components must be a list/],
  ['UTILITY', [{ type: 'FOOTER', text: 'x' }], /exactly one component of type BODY/],
  ['UTILITY', [bodyComponent, bodyComponent], /only one component of type BODY/],
  ['AUTHENTICATION', [{ type: 'BODY', text: 'Your code' }, otpButtons], /text of its own/],
  ['AUTHENTICATION', [{ type: 'BODY' }], /one button, of type OTP/],
  [
    'AUTHENTICATION',
    [{ type: 'BODY' }, { type: 'HEADER', format: 'LOCATION' }, otpButtons],
    /can't have a component of type HEADER/,
  ],
]

everySandbox('Sandbox: template checks', (withSandbox) => {
  it('create: components that the provider does not take together are rejected', async () => {
    await withSandbox(async (fixture) => {
      for (const [category, components, message] of invalidTemplates) {
        const path = `v23.0/${fixture.account}/message_templates`
        const template = { name: 'bad', language: 'en', category, components }
        const { status, body } = await fixture.call('POST', path, template)
        assert.deepEqual([status, body.error?.code], [400, 100], JSON.stringify([components, body]))
        assert.match(body.error.error_user_msg ?? body.error.message, message)
      }
    })
  })

  it('update: changed components are checked like new ones', async () => {
    await withSandbox(async (fixture) => {
      const { body: created } = await fixture.call('POST', `v23.0/${fixture.account}/message_templates`, {
        name: 'a',
        language: 'en',
        category: 'UTILITY',
        components: [bodyComponent],
      })
      await fixture.control('POST', 'review', { template_id: created.id, decision: 'approve' })
      const edit = (components: object[]) => fixture.call('POST', `v23.0/${created.id}`, { components })
      assert.equal((await edit(withButtons({ type: 'VOICE_CALL' }))).status, 400)
      assert.deepEqual((await edit(withButtons({ type: 'VOICE_CALL', text: 'Call' }))).body, {
        success: true,
      })
    })
  })

  it('media headers: the sample must be uploaded, and be of the type of the header', async () => {
    await withSandbox(async (fixture) => {
      const handles = {
        IMAGE: await upload(fixture, 'IMAGE'),
        VIDEO: await upload(fixture, 'VIDEO'),
        DOCUMENT: await upload(fixture, 'DOCUMENT'),
      }
      let count = 0
      const create = async (components: object[]) => {
        const { status, body } = await fixture.call('POST', `v23.0/${fixture.account}/message_templates`, {
          name: `sample_${count++}`,
          language: 'en',
          category: 'MARKETING',
          components,
        })
        return status === 200
          ? 'accepted'
          : [status, body.error.code, body.error.error_subcode, body.error.error_user_msg]
      }
      const header = (format: string, handle: string) => ({
        type: 'HEADER',
        format,
        example: { header_handle: [handle] },
      })
      const carousel = (format: string, ...cardHandles: string[]) => [
        bodyComponent,
        {
          type: 'CAROUSEL',
          cards: cardHandles.map((handle) => ({
            components: [header(format, handle), { type: 'BUTTONS', buttons: [quickReply] }],
          })),
        },
      ]
      for (const [format, own] of Object.entries(handles))
        for (const handle of Object.values(handles)) {
          const outcome = await create([header(format, handle), bodyComponent])
          if (handle === own) assert.equal(outcome, 'accepted')
          else {
            assert.deepEqual(outcome.slice(0, 3), [400, 131009, 2494102])
            assert.match(outcome[3], new RegExp(`header of format ${format} must be of type`))
          }
        }
      for (const unknown of [
        `${handles.IMAGE}x`,
        '4::aW1hZ2UvanBlZw==:ARinvented',
        'https://a.example/a.png',
        'é',
      ])
        assert.match(
          String(await create([header('IMAGE', unknown), bodyComponent])),
          /not of an uploaded file/,
        )
      assert.equal(await create(carousel('IMAGE', handles.IMAGE, handles.IMAGE)), 'accepted')
      assert.match(
        String(await create(carousel('IMAGE', handles.IMAGE, handles.VIDEO))),
        /is of type video\/mp4/,
      )
      assert.match(String(await create(carousel('VIDEO', handles.VIDEO, '4::a'))), /not of an uploaded file/)
    })
  })

  it('media headers: an unfinished upload has no handle, and an edit needs samples too', async () => {
    await withSandbox(async (fixture) => {
      const handle = await upload(fixture, 'IMAGE')
      const components = (own: string) => [
        { type: 'HEADER', format: 'IMAGE', example: { header_handle: [own] } },
        bodyComponent,
      ]
      const { body: created } = await fixture.call('POST', `v23.0/${fixture.account}/message_templates`, {
        name: 'edited',
        language: 'en',
        category: 'UTILITY',
        components: components(handle),
      })
      await fixture.control('POST', 'review', { template_id: created.id, decision: 'approve' })
      const edit = (own: string) =>
        fixture.call('POST', `v23.0/${created.id}`, { components: components(own) })
      assert.equal((await edit('4::a')).body.error.error_subcode, 2494102)
      assert.deepEqual((await edit(handle)).body, { success: true })
    })
  })

  it('media headers: templates that were made elsewhere bring their samples', async () => {
    await withSandbox(async (fixture) => {
      const components = [
        { type: 'HEADER', format: 'VIDEO', example: { header_handle: [`4::${fixture.account}`] } },
        bodyComponent,
      ]
      await fixture.control('PUT', 'templates', {
        templates: [{ account_id: fixture.account, name: 'here', language: 'en', components }],
      })
      const create = (name: string, format: string) =>
        fixture.call('POST', `v23.0/${fixture.account}/message_templates`, {
          name,
          language: 'en',
          category: 'UTILITY',
          components: [{ ...components[0], format }, bodyComponent],
        })
      assert.equal((await create('again', 'VIDEO')).status, 200)
      assert.equal((await create('other', 'IMAGE')).body.error.error_subcode, 2494102)
    })
  })
})

/** Uploads a sample in the two steps of the provider; returns its handle. */
const upload = async ({ call }: SandboxFixture, format: keyof typeof sampleFiles): Promise<string> => {
  const { content_type: type, data } = sampleFiles[format]
  const bytes = Buffer.from(data, 'base64')
  const { body: session } = await call(
    'POST',
    `v23.0/1/uploads?file_type=${encodeURIComponent(type)}&file_length=${bytes.byteLength}`,
  )
  const { body } = await call('POST', `v23.0/${session.id}`, bytes, {
    file_offset: '0',
    'Content-Type': 'application/octet-stream',
  })
  return body.h as string
}
