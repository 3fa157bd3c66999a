"""IAM and SSM of moto with corrections; Pricing and zonal shift, which moto lacks."""

import json
from datetime import UTC, datetime
from typing import ClassVar, Final

from moto.core.responses import ActionResult, BaseResponse
from moto.ec2.models import ec2_backends
from moto.iam.responses import IamResponse
from moto.ssm.responses import SimpleSystemManagerResponse

from karpy.adapters.clouds.awsfake.ec2bridge import add_image, micros_text
from karpy.adapters.clouds.awsfake.imagetable import image_of_parameter
from karpy.adapters.clouds.awsfake.tables import Tables
from karpy.model.labels import ON_DEMAND

_PRODUCTS_A_PAGE: Final = 100
_METAL_FAMILY: Final = "Compute Instance (bare metal)"


class IamBridge(IamResponse):
    """IAM that lists instance profiles by path."""

    def list_instance_profiles(self) -> ActionResult:
        prefix = self._get_param("PathPrefix") or "/"
        every = self.backend.get_instance_profiles()
        found = [each for each in every if (each.path or "/").startswith(prefix)]
        return ActionResult({"InstanceProfiles": found})


class SsmBridge(SimpleSystemManagerResponse):
    """SSM with the public parameters for the images of EKS."""

    tables: ClassVar[Tables]

    def get_parameter(self) -> ActionResult:
        name = self._get_param("Name")
        seed = image_of_parameter(name, self.tables.release)
        if seed is None:
            return super().get_parameter()
        add_image(ec2_backends[self.current_account][self.region], seed)
        parameter = {
            "Name": name,
            "Type": "String",
            "Value": seed.id,
            "Version": 1,
            "LastModifiedDate": datetime.now(UTC),
            "DataType": "aws:ec2:image",
        }
        return ActionResult({"Parameter": parameter})


class PricingBridge(BaseResponse):
    """On-demand prices, as products of EC2."""

    tables: ClassVar[Tables]

    def __init__(self) -> None:
        super().__init__(service_name="pricing")
        self.automated_parameter_parsing = True

    def get_products(self) -> ActionResult:
        wanted = {each["Field"]: each["Value"] for each in self._get_param("Filters", [])}
        is_metal = wanted.get("productFamily") == _METAL_FAMILY
        names = [
            name
            for name in self.tables.types
            if ("metal" in name) == is_metal and wanted.get("instanceType", name) == name
        ]
        if wanted.get("regionCode", self.tables.region) != self.tables.region:
            names = []
        start = int(self._get_param("NextToken") or 0)
        end = start + min(int(self._get_param("MaxResults") or _PRODUCTS_A_PAGE), _PRODUCTS_A_PAGE)
        token = {"NextToken": str(end)} if end < len(names) else {}
        listed = [self._product(each) for each in names[start:end]]
        return ActionResult({"FormatVersion": "aws_v1", "PriceList": listed, **token})

    def _product(self, name: str) -> str:
        price = micros_text(self.tables.market.price(ON_DEMAND, name, ""))
        dimension = {"unit": "Hrs", "pricePerUnit": {"USD": price}}
        return json.dumps(
            {
                "product": {"attributes": {"instanceType": name}},
                "serviceCode": "AmazonEC2",
                "terms": {"OnDemand": {"t": {"priceDimensions": {"d": dimension}}}},
            }
        )


class ZonalShiftBridge(BaseResponse):
    """The zonal shifts of a cluster."""

    tables: ClassVar[Tables]

    def __init__(self) -> None:
        super().__init__(service_name="arc-zonal-shift")
        self.automated_parameter_parsing = True

    def get_managed_resource(self) -> ActionResult:
        resource = str(self._get_param("resourceIdentifier"))
        shifts = [{**each, "resourceIdentifier": resource} for each in self.tables.shifts]
        return ActionResult(
            {
                "arn": resource,
                "name": resource.rpartition("/")[2],
                "appliedWeights": {},
                "zonalShifts": shifts,
                "autoshifts": [],
            }
        )
