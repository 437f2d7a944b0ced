import { z } from 'zod'
import type { Provider, ProviderNumber } from '../port.ts'
import { fetchAllRows, OptionalText, ProviderId, SuccessResponse, withFieldFallback } from './responses.ts'
import { joinPath, type ProviderHttp } from './http.ts'

const Row = z
  .object({
    id: ProviderId,
    display_phone_number: z.string(),
    verified_name: OptionalText,
    status: OptionalText,
    quality_rating: OptionalText,
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
const BASIC_FIELDS = 'id,display_phone_number,verified_name,quality_rating'
const PAGE_SIZE = '50'

export const createAccountsApi = (http: ProviderHttp): Pick<Provider, 'phoneNumbers' | 'subscribe'> => ({
  phoneNumbers: async (accountId, signal) =>
    await withFieldFallback(FIELDS, BASIC_FIELDS, (fields) =>
      fetchAllRows(
        http,
        Row,
        { method: 'GET', path: joinPath(accountId, 'phone_numbers'), query: { fields, limit: PAGE_SIZE } },
        signal,
      ),
    ),

  subscribe: async (accountId, callback, signal) => {
    const json = callback ? { override_callback_uri: callback.url, verify_token: callback.verifyToken } : {}
    await http.request(
      SuccessResponse,
      { method: 'POST', path: joinPath(accountId, 'subscribed_apps'), json },
      signal,
    )
  },
})
