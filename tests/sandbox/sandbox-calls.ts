import assert from 'node:assert/strict'
import type { SandboxFixture, SandboxReply } from './sandbox-fixture.ts'

export const CUSTOMER = '16315551234'
export const HOUR_MS = 3_600_000
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

/** Asserts an error of the provider's format, with this HTTP status and code, and details that match. */
export const assertError = (
  { status, body }: SandboxReply,
  httpStatus: number,
  code: number,
  details?: RegExp,
): void => {
  assert.deepEqual([status, body.error?.code], [httpStatus, code], JSON.stringify(body))
  assert.match(body.error.fbtrace_id, /^A[\w-]+$/)
  if (details) assert.match(body.error.error_data?.details ?? body.error.message, details)
}

export const postMessage = (
  fixture: SandboxFixture,
  body: unknown,
  version = 'v23.0',
): Promise<SandboxReply> => fixture.call('POST', `${version}/${fixture.number}/messages`, body)
/** Has a customer write to the fixture's number. Returns the id of the message. */
export const writeAsCustomer = async (
  fixture: SandboxFixture,
  fields: Record<string, unknown> = {},
): Promise<string> => {
  const { status, body } = await fixture.control('POST', 'say', {
    number_id: fixture.number,
    from: `+${CUSTOMER}`,
    name: 'Zoë',
    text: 'Hello',
    ...fields,
  })
  assert.equal(status, 200, JSON.stringify(body))
  return body.id as string
}
export const listStatuses = (fixture: SandboxFixture): string[] =>
  fixture.changes.flatMap(({ value }) => (value.statuses ?? []).map((s: Record<string, string>) => s.status))

/** Returns one template of every kind that the sandbox checks, in the format of `PUT /control/templates`. */
export const buildTemplates = (account: string) =>
  [
    { name: 'plain', components: [{ type: 'BODY', text: 'Hello {{1}}, your code {{2}} is here.' }] },
    {
      name: 'named',
      parameter_format: 'NAMED',
      components: [{ type: 'BODY', text: 'Hello {{first_name}} of ours.' }],
    },
    {
      name: 'rich',
      category: 'MARKETING',
      components: [
        { type: 'HEADER', format: 'IMAGE', example: { header_handle: ['4::x'] } },
        { type: 'BODY', text: 'Save {{1}} now.' },
        { type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: 'Offer', has_expiration: true } },
        {
          type: 'BUTTONS',
          buttons: [
            { type: 'QUICK_REPLY', text: 'Stop' },
            { type: 'URL', text: 'Shop', url: 'https://x.example/{{1}}' },
            { type: 'COPY_CODE', example: 'A' },
          ],
        },
      ],
    },
    {
      name: 'cards',
      components: [
        { type: 'BODY', text: 'Look.' },
        {
          type: 'CAROUSEL',
          cards: [1, 2].map(() => ({
            components: [
              { type: 'HEADER', format: 'IMAGE' },
              { type: 'BODY', text: 'Card {{1}} of ours' },
            ],
          })),
        },
      ],
    },
    { name: 'paused', status: 'PAUSED', components: [{ type: 'BODY', text: 'Hello.' }] },
    { name: 'waiting', status: 'PENDING', components: [{ type: 'BODY', text: 'Hello.' }] },
  ].map((template, index) => ({
    id: `${account}${index}`,
    account_id: account,
    language: 'en_US',
    category: 'UTILITY',
    status: 'APPROVED',
    ...template,
  }))

export const buildTemplateMessage = (name: string, components?: unknown[]) => ({
  messaging_product: 'whatsapp',
  to: CUSTOMER,
  type: 'template',
  template: { name, language: { code: 'en_US' }, ...(components ? { components } : {}) },
})
export const textParameters = (type: string, ...values: string[]) => ({
  type,
  parameters: values.map((value) => ({ type: 'text', text: value })),
})
