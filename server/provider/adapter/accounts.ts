import { z } from 'zod'
import type { Provider, ProviderNumber } from '../port.ts'
import { everyPage, Maybe, ProviderId, Success, withFields } from './answers.ts'
import { at, type Http } from './http.ts'

const Row = z
  .object({
    id: ProviderId,
    display_phone_number: z.string(),
    verified_name: Maybe,
    status: Maybe,
    quality_rating: Maybe,
  })
  .transform(
    ({
      display_phone_number: displayPhoneNumber,
      verified_name: verifiedName,
      status,
      quality_rating: qualityRating,
      id,
    }): ProviderNumber => ({
      id,
      displayPhoneNumber,
      verifiedName,
      status: status ?? 'UNKNOWN',
      qualityRating,
    }),
  )

const FIELDS = 'id,display_phone_number,verified_name,status,quality_rating'
const FEW = 'id,display_phone_number,verified_name,quality_rating'
const PAGE = '50'

export const accounts = (http: Http): Pick<Provider, 'phoneNumbers' | 'subscribe'> => ({
  phoneNumbers: async (accountId, signal) =>
    await withFields(FIELDS, FEW, (fields) =>
      everyPage(
        http,
        Row,
        { method: 'GET', path: at(accountId, 'phone_numbers'), query: { fields, limit: PAGE } },
        signal,
      ),
    ),

  subscribe: async (accountId, callback, signal) => {
    const json = callback ? { override_callback_uri: callback.url, verify_token: callback.verifyToken } : {}
    await http.ask(Success, { method: 'POST', path: at(accountId, 'subscribed_apps'), json }, signal)
  },
})
