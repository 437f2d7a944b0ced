import { isOutcomeUnknown } from '../../kernel/open-outcomes.ts'
import { z } from 'zod'
import { Problem } from '../../kernel/problem.ts'
import { lookUpOutcome, type Provider } from '../port.ts'
import { OptionalText, ProviderId } from './responses.ts'
import { joinPath, type ProviderHttp } from './http.ts'

const Customer = z.object({
  wa_id: z.string().nullish().catch(null),
  user_id: z.string().nullish().catch(null),
})
const Sent = z.object({
  messages: z.array(z.object({ id: z.string().min(1), message_status: OptionalText })).min(1),
  // One message has one recipient. What else is there says nothing, and must not fail what was sent.
  contacts: z.array(Customer).length(1).optional().catch(undefined),
})
const Found = z.object({ data: z.array(z.object({ id: ProviderId })) })

/** `sandbox`: only a sandbox has a look-up of messages, and only it is asked. */
export const createMessagesApi = (
  { request }: ProviderHttp,
  sandbox: boolean,
): Pick<Provider, 'send' | 'findSent'> => ({
  send: async ({ phoneNumberId }, { to, recipient, reference, replyTo, body }, signal) => {
    const response = await request(
      Sent,
      {
        method: 'POST',
        path: joinPath(phoneNumberId, 'messages'),
        json: {
          messaging_product: 'whatsapp',
          recipient_type: 'individual',
          ...(to === undefined ? { recipient } : { to }),
          ...(replyTo === undefined ? {} : { context: { message_id: replyTo } }),
          type: body.type,
          [body.type]: body[body.type],
          biz_opaque_callback_data: reference,
        },
      },
      signal,
    )
    const { wa_id: phone = null, user_id: userId = null } = response.contacts?.[0] ?? {}
    const { id, message_status: status } = response.messages[0]!
    return {
      id,
      ...(status === 'held_for_quality_assessment' || status === 'paused' ? { held: status } : {}),
      ...(phone === null && userId === null ? {} : { customer: { phone, userId } }),
    }
  },

  // The response is checked, since a provider could ignore the query and return all of its messages.
  findSent: async ({ phoneNumberId }, reference, signal) => {
    if (!sandbox) return 'unknown'
    const query = request(
      z.unknown(),
      {
        method: 'GET',
        path: joinPath(phoneNumberId, 'messages'),
        query: { biz_opaque_callback_data: reference },
      },
      signal,
    )
    const response = await lookUpOutcome(
      query.catch((error: unknown) => {
        if (error instanceof Problem && error.code !== 'upstream_unavailable' && !isOutcomeUnknown(error))
          return undefined
        throw error
      }),
    )
    const found = Found.safeParse(response)
    if (!found.success || found.data.data.length > 1) return 'unknown'
    return found.data.data[0] ?? 'absent'
  },
})
