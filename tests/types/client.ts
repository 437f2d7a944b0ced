/*
 * What a program that uses @wcrm/client may say, and what must not compile: as in contracts of this folder, each line
 * below an `@ts-expect-error` must be an error. No test runs this file.
 */
import { type ContactFilter, createClient, isWcrmError, verifyWebhook } from '../../client/index.ts'

const wcrm = createClient({ url: 'https://crm.example.com', apiKey: 'wc_live_x' })

export const examples = async (): Promise<unknown[]> => {
  const filter: ContactFilter = {
    and: [{ tags: { some: { name: { eq: 'VIP' } } } }, { not: { email: { isNull: true } } }],
  }
  const found: string[] = []
  for await (const { name } of wcrm.contacts.search({ filter })) found.push(name?.toUpperCase() ?? '')
  for await (const event of wcrm.stream())
    if (event.type === 'group.created/1') found.push(event.data.group.name)
  const event = await verifyWebhook({ secret: 'whsec_', headers: {}, body: '' })
  if (event.type === 'message.received') found.push(event.data.message.text ?? '')
  const rehearsed = await wcrm.conversations.reply({ conversation_id: '1', text: 'Yes.' }, { dryRun: true })
  try {
    await wcrm.conversations.reply({ conversation_id: '1', text: 'Yes.' }, { confirm: 'send' })
  } catch (error) {
    if (isWcrmError(error, 'window_closed') && error.reason === 'outcome_unknown') found.push(error.message)
    // @ts-expect-error -- there is no such code
    isWcrmError(error, 'window_open')
  }
  return [found, rehearsed]
}

export const mistakes = (): unknown[] => [
  // @ts-expect-error -- neither text nor file nor saved reply
  wcrm.conversations.reply({ conversation_id: '1' }, { confirm: 'send' }),
  // @ts-expect-error -- a send needs a confirmation
  wcrm.conversations.reply({ conversation_id: '1', text: 'Yes.' }),
  // @ts-expect-error -- another verb
  wcrm.conversations.reply({ conversation_id: '1', text: 'Yes.' }, { confirm: 'delete' }),
  // @ts-expect-error -- to nobody
  wcrm.messages.sendTemplate({ template: { name: 'a', language: 'en' } }, { confirm: 'send' }),
  // @ts-expect-error -- no such field
  wcrm.contacts.count({ filter: { nmae: { eq: 'x' } } }),
  // @ts-expect-error -- no such operator of a text
  wcrm.contacts.count({ filter: { name: { gt: 'x' } } }),
  // @ts-expect-error -- reads change nothing
  wcrm.contacts.get({ contact_id: '1' }, { dryRun: true }),
]
